"""Diagnose each story, broken and mended, by the public command line, and write results.json.

    python -m tests.gallery.small.run [NAME…]

Of each story the broken side must give the right first cause with the fix that the mended side has,
and the mended side must be healthy.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import TOKEN, end, processes_with, python_path
from tests.gallery.small.stories import BY_NAME, LIMIT_S, RESULTS, STORIES, Story
from tests.gallery.small.surroundings import (
    CannotMakeError,
    earlier_run,
    end_as_told,
    memory_cgroup,
)

KILLED_AFTER_S = 300.0
PACKAGES = ("torch", "transformers", "datasets", "accelerate")
SIDES = ("broken", "mended")


@dataclass(frozen=True)
class Side:
    """What one call of the tool gave for one side of a story."""

    exit_code: int
    took_s: float
    report: Mapping[str, Any]
    text: str

    @property
    def first(self) -> Mapping[str, Any]:
        causes: Sequence[Mapping[str, Any]] = self.report.get("causes") or [{}]
        return causes[0]

    def row(self) -> dict[str, Any]:
        """What results.json keeps: nothing that tells the machine or a folder of it."""
        first = self.first
        return {
            "took_s": round(self.took_s, 1),
            "exit": self.exit_code,
            "verdict": self.report.get("verdict", ""),
            "cause": first.get("id", ""),
            "confidence": round(first.get("confidence", 0.0), 2),
        }


def environment() -> dict[str, str]:
    """The environment of a user's shell in which `python` is the one that has torch."""
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', '')}"
    return {
        **os.environ,
        **python_path(),
        "PATH": path,
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def lay_out(story: Story, side: str, folder: Path) -> None:
    shutil.copy(story.program(side), folder / "train.py")
    for path in story.beside:
        shutil.copy(path, folder / path.name)
    (folder / "tmp").mkdir(exist_ok=True)


def command(story: Story) -> list[str]:
    """What a user types, with the two options that only say where the report goes."""
    return [
        sys.executable,
        "-m",
        "trainprobe",
        "diagnose",
        "--json",
        "report.json",
        "--case",
        "case",
        *story.words,
    ]


def diagnose(story: Story, side: str, folder: Path) -> Side:
    """Call the tool in `folder`, under the limits of the story; all that it started is ended
    with it. Raises CannotMakeError.
    """
    lay_out(story, side, folder)
    shells = dict(story.shells) if side == "mended" else {}
    mark = uuid.uuid4().hex
    env = {**environment(), **shells, "TMPDIR": str(folder / "tmp"), TOKEN: mark}
    with memory_cgroup(story.memory_mib) as cgroup, (folder / "printed.txt").open("wb") as out:
        join = "" if cgroup is None else f'echo $$ > "{cgroup}/cgroup.procs" || exit 99; '
        limit = "" if story.nofile is None else f"ulimit -n {story.nofile}; "
        began = time.monotonic()
        process = subprocess.Popen(
            ["/bin/sh", "-c", f'{join}{limit}exec "$@"', "sh", *command(story)],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
        try:
            exit_code = process.wait(timeout=KILLED_AFTER_S)
        except subprocess.TimeoutExpired:
            end([process.pid, *processes_with(mark)])
            exit_code = process.wait()
        took_s = time.monotonic() - began
        end(list(processes_with(mark)))
    written = folder / "report.json"
    report = json.loads(written.read_text(encoding="utf-8")) if written.exists() else {}
    return Side(
        exit_code,
        took_s,
        report,
        (folder / "printed.txt").read_text(encoding="utf-8", errors="replace"),
    )


def proposed(story: Story, side: Side) -> str:
    """The title of the fix in the report that has the words of what was applied; empty where
    none has.
    """
    for one in side.first.get("fixes", []):
        if story.applied in "\n".join([one["title"], *one["steps"]]):
            return str(one["title"])
    return ""


def faults(story: Story, broken: Side, mended: Side | None) -> list[str]:
    """What is not as it must be, in words; empty where the story is found and its fix heals it."""
    said = []
    if broken.first.get("id") != story.cause:
        others = [one["id"] for one in broken.report.get("causes", [])]
        said.append(
            f"first cause {others[0] if others else 'none'} in place of {story.cause}"
            + (", which stands lower" if story.cause in others else "")
        )
    elif not proposed(story, broken):
        said.append(f"no fix says {story.applied}")
    if broken.report.get("verdict") not in story.verdicts:
        said.append(
            f"verdict {broken.report.get('verdict', 'missing')} in place of"
            f" {' or '.join(story.verdicts)}"
        )
    if broken.exit_code != 1:
        said.append(f"exit {broken.exit_code} for the broken side")
    likely = {one["id"]: one["confidence"] for one in broken.report.get("causes", [])}
    said += [f"{name} is suspected" for name in story.unsuspected if likely.get(name, 0.0) > 0.05]
    if mended is None:
        said.append("the fix could not be applied")
    elif mended.exit_code != 0:
        said.append(
            f"the mended side is {mended.report.get('verdict', 'without a report')}"
            f" ({mended.first.get('id', 'no cause')}), exit {mended.exit_code}"
        )
    said += [
        f"the {name} side took {side.took_s:.0f} s"
        for name, side in zip(SIDES, (broken, mended), strict=True)
        if side and side.took_s > LIMIT_S
    ]
    return said


def both_ways(story: Story) -> dict[str, Any]:
    """Return the row of results.json."""
    row: dict[str, Any] = {"name": story.name, "digest": story.digest(), "expected": story.cause}
    missing = [name for name in story.needs if importlib.util.find_spec(name) is None]
    if missing:
        return {**row, "outcome": "not run", "why": [f"{', '.join(missing)} not installed"]}
    with ExitStack() as stack:
        folders = [
            Path(
                stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="job-", ignore_cleanup_errors=True)
                )
            )
            for _ in SIDES
        ]
        try:
            lay_out(story, "broken", folders[0])
            left = stack.enter_context(
                earlier_run(story.earlier, story.left, folders[0], environment())
            )
            broken = diagnose(story, "broken", folders[0])
            _show(story, "broken", broken)
            # The fix of processes left behind is typed as the report says it, and the same program
            # runs again where it ran.
            applied = not story.earlier or end_as_told(broken.report, left)
            mended = (
                diagnose(story, "mended", folders[0] if story.earlier else folders[1])
                if applied
                else None
            )
        except CannotMakeError as error:
            return {**row, "outcome": "not run", "why": [str(error)]}
    if mended is not None:
        _show(story, "mended", mended)
    why = faults(story, broken, mended)
    rows = {
        "broken": broken.row(),
        "mended": mended.row() if mended else None,
        "fix": proposed(story, broken),
    }
    return {**row, **rows, "outcome": "missed" if why else "found", "why": why}


def _show(story: Story, side: str, what: Side) -> None:
    row = what.row()
    sys.stdout.write(
        f"{story.name:10} {side}  {row['took_s']:5.1f} s  exit {row['exit']}  {row['verdict']:8}"
        f" {row['cause']} {row['confidence'] or ''}\n"
    )
    sys.stdout.flush()
    if "SHOW" in os.environ:
        sys.stdout.write(what.text)


def about() -> dict[str, Any]:
    """Where it was run: no names of machines or paths."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    kernel = re.match(r"\d+\.\d+", platform.release())
    return {
        "python": platform.python_version(),
        "versions": versions,
        "platform": f"{platform.system()} {kernel.group(0) if kernel else ''} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def main(names: Sequence[str]) -> int:
    """Return 0 where every story that could be run was found and mended."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        sys.stderr.write(f"no story {', '.join(unknown)}; there are {', '.join(BY_NAME)}\n")
        return 2
    kept = (
        {row["name"]: row for row in json.loads(RESULTS.read_text(encoding="utf-8"))["stories"]}
        if RESULTS.exists()
        else {}
    )
    done = []
    for story in STORIES:
        if names and story.name not in names:
            continue
        row = {**both_ways(story), **about()}
        done.append(row)
        kept[story.name] = row
        sys.stdout.write(
            f"{story.name:10} {row['outcome']}{': ' if row['why'] else ''}{'; '.join(row['why'])}\n"
        )
        RESULTS.write_text(
            json.dumps(
                {"stories": [kept[one.name] for one in STORIES if one.name in kept]}, indent=1
            )
            + "\n",
            encoding="utf-8",
        )
    return 0 if all(row["outcome"] != "missed" for row in done) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
