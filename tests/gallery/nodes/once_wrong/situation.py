"""What a situation is, and what one look at it gave."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gallery.nodes.stand import Stand
from tests.gallery.nodes.ways import environment

KILLED_AFTER_S = 150.0


@dataclass(frozen=True)
class Seen:
    """What one call of the tool gave. `exit_code` is None where it did not end."""

    exit_code: int | None
    report: Mapping[str, Any]
    said: str
    took_s: float

    @property
    def first(self) -> Mapping[str, Any]:
        causes: Sequence[Mapping[str, Any]] = self.report.get("causes") or [{}]
        return causes[0]


Look = Callable[[Path], Seen]
Wrongs = Callable[[Seen], list[str]]


@dataclass(frozen=True)
class Situation:
    """`tried` and `came` are what a site told, `must` is what has to come; `made` makes it and
    gives the look at it. `lacking` says why it cannot be made here, or nothing.
    """

    name: str
    tried: str
    came: str
    must: str
    made: Callable[[Stand, Path], AbstractContextManager[Look]]
    wrongs: Wrongs
    lacking: Callable[[], str] = lambda: ""


def called(
    argv: Sequence[str], folder: Path, env: Mapping[str, str], *, cwd: Path | None = None
) -> Seen:
    """Run the tool; its report is the file `report.json` in this folder."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            argv,
            env=dict(env),
            cwd=cwd or folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=KILLED_AFTER_S,
        )
    except subprocess.TimeoutExpired:
        return Seen(None, {}, "", time.monotonic() - began)
    file = folder / "report.json"
    report = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return Seen(done.returncode, report, done.stdout + done.stderr, time.monotonic() - began)


def with_report(folder: Path) -> list[str]:
    """The options that say where the report goes."""
    return ["--json", str(folder / "report.json"), "--case", str(folder / "case")]


def users(stand: Stand) -> dict[str, str]:
    """A user's environment, in which nothing tells what the situation is."""
    return {**environment(stand), "OMP_NUM_THREADS": "1"}


def batch_variables() -> dict[str, str]:
    """What a batch system leaves of the environment."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


def names(
    causes: Iterable[str],
    hosts: Iterable[str],
    ranks: Iterable[int] | None = None,
    verdicts: Sequence[str] = ("hung",),
    never: Sequence[str] = (),
) -> Wrongs:
    """The first cause must be one of these, on exactly these hosts and ranks; words in `never`
    must not be said.
    """
    accepted, guilty = set(causes), set(hosts)
    sick = None if ranks is None else set(ranks)

    def wrongs(seen: Seen) -> list[str]:
        if seen.exit_code is None:
            return ["it did not end"]
        if not seen.report:
            return [f"no report, exit {seen.exit_code}"]
        first, said = seen.first, []
        if seen.report["verdict"] not in verdicts:
            said.append(f"verdict {seen.report['verdict']}")
        if first.get("id") not in accepted:
            said.append(f"first cause {first.get('id', 'none')}")
        if set(first.get("hosts", ())) != guilty:
            said.append(f"hosts {', '.join(first.get('hosts', ())) or 'none'}")
        if sick is not None and set(first.get("ranks", ())) != sick:
            said.append(f"ranks {', '.join(map(str, first.get('ranks', ()))) or 'none'}")
        return said + [f"it says “{word}”" for word in never if word in seen.said]

    return wrongs


def leaves_out(*hosts: str, words: Sequence[str] = ()) -> Wrongs:
    """`ready` must end with 10, leave out exactly these hosts and say these words."""

    def wrongs(seen: Seen) -> list[str]:
        if seen.exit_code is None:
            return ["it did not end"]
        found = tuple(seen.report.get("readiness", {}).get("exclude", ()))
        plain = " ".join(seen.said.split())
        return (
            ([] if seen.exit_code == 10 else [f"exit {seen.exit_code}"])
            + ([] if found == hosts else [f"left out: {', '.join(found) or 'none'}"])
            + [f"nothing of “{word}”" for word in words if word not in plain]
        )

    return wrongs


def ends(*codes: int, words: Sequence[str] = (), never: Sequence[str] = ("Traceback",)) -> Wrongs:
    """It must end with one of these codes, say these words, and none of the others."""

    def wrongs(seen: Seen) -> list[str]:
        if seen.exit_code is None:
            return ["it did not end"]
        plain = " ".join(seen.said.split())
        return (
            ([] if seen.exit_code in codes else [f"exit {seen.exit_code}"])
            + [f"nothing of “{word}”" for word in words if word not in plain]
            + [f"it says “{word}”" for word in never if word in plain]
        )

    return wrongs
