"""Climbs made for a test: own probes in a folder, or a small script, with short times."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.config import Settings
from trainprobe.ladder.climb import climb
from trainprobe.ladder.planning import make_plan
from trainprobe.model.evidence import Evidence
from trainprobe.model.progress import Silence
from trainprobe.model.request import DiagnoseRequest
from trainprobe.nodes.transports import Way
from trainprobe.system.interruption import Interrupted

SPEAK = """
import json, os, sys, time
def say(event, **fields):
    with open(os.environ["TRAINPROBE_EVENTS"], "a") as file:
        file.write(json.dumps({"event": event, "at": time.time(), **fields}) + "\\n")
rank = int(os.environ.get("RANK", "0"))
"""


@dataclass
class Climbed:
    """What one climb left in its case."""

    evidence: tuple[Evidence, ...]
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    def of(self, kind: str, cell: str | None = None) -> list[Evidence]:
        return [
            one for one in self.evidence if one.kind == kind and (cell is None or one.cell == cell)
        ]

    def rung(self, cell: str) -> dict[str, Any]:
        rows = self.of("rung", cell)
        assert len(rows) == 1, [one.cell for one in self.of("rung")]
        return dict(rows[0].data)

    def outcomes(self) -> dict[str, str]:
        """Cell to outcome, without the rungs that --only left out."""
        return {
            one.cell: one.data["outcome"] for one in self.of("rung") if one.data["unmet"] != "asked"
        }

    def endings(self, cell: str) -> dict[int | None, dict[str, Any]]:
        return {one.subject.rank: dict(one.data) for one in self.of("rank.ended", cell)}


Climb = Callable[..., Climbed]
QUICK = Settings(first_output_s=6.0, stall_s=3.0, run_s=6.0)


@pytest.fixture
def climbed(tmp_path: Path) -> Climb:
    """Climb and return what was learnt. `settings` are short times, `way` leads to nodes;
    everything else goes into the request.
    """

    def run(*, settings: Settings = QUICK, way: Way | None = None, **asked: Any) -> Climbed:
        request = replace(DiagnoseRequest(interpreter=sys.executable), **asked)
        plan = make_plan(request, settings, way=way)
        case = (
            Case.create(str(tmp_path / "case"), "diagnose", ())
            if request.resume is None
            else Case.reopen(request.resume)
        )
        interrupted = False
        try:
            climb(plan, case, Silence(), settings)
        except Interrupted:
            interrupted = True
        case.close()
        return Climbed(case.evidence, interrupted)

    return run


@pytest.fixture
def probe(tmp_path: Path, climbed: Climb) -> Climb:
    """Write one probe from its body, climb it alone, and return what was learnt."""

    def run(
        body: str,
        *,
        scope: str = "host",
        timeout_s: float = 20.0,
        nproc: int = 2,
        needs: str = "",
        **how: Any,
    ) -> Climbed:
        folder = tmp_path / "probes"
        folder.mkdir(exist_ok=True)
        header = (
            f"# /// trainprobe\n# rung: 5\n# question: Does it work?\n# scope: {scope}\n#"
            f" timeout_s: {timeout_s}\n# needs: [{needs}]\n# ///\n"
        )
        (folder / "mine.py").write_text(header + SPEAK + textwrap.dedent(body))
        return climbed(nproc=nproc, probe_dirs=(str(folder),), only=("mine",), **how)

    return run


@pytest.fixture
def script(tmp_path: Path, climbed: Climb, monkeypatch: pytest.MonkeyPatch) -> Climb:
    """Write a user's script from its body, climb user_script alone, and return what was learnt."""

    def run(
        body: str,
        *,
        nproc: int = 2,
        argv: tuple[str, ...] = (),
        form: str = "launch",
        command: tuple[str, ...] = (),
        **how: Any,
    ) -> Climbed:
        path = tmp_path / "job" / "train.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(body))
        monkeypatch.chdir(path.parent)
        words = command or ("train.py", *argv)
        return climbed(nproc=nproc, form=form, argv=words, only=("user_script",), **how)

    return run
