"""Climbs each program of climbs.yaml by the public command and holds the report against the truth:
`python -m tests.gallery.climbs.run [NAME…]`.

It takes minutes per program and needs transformers and lightning beside torch. The figures go to
results.json beside this file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RESULTS = HERE / "results.json"
RANKS, ROWS = "1,2", "100,1000"
PATIENCE_S = 600.0
MOST_OVER_CELLS = 1.15
NEEDS = {"transformers Trainer": "transformers", "Lightning": "lightning"}


@dataclass(frozen=True)
class Truth:
    """What is true of one program. `mended` are (old, new) replacements in its text; `nofile` is
    the soft limit of open files to run under.
    """

    name: str
    family: str
    story: str
    ranks: int
    rows: int
    heals: tuple[str, ...]
    heals_not: tuple[str, ...]
    causes: tuple[str, ...]
    mended: tuple[tuple[str, str], ...]
    knobs: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    nofile: int | None = None

    def text(self, *, mended: bool) -> str:
        """The program's text; ValueError where a replacement does not fit exactly once."""
        text = (HERE / "programs" / f"{self.name}.py").read_text(encoding="utf-8")
        for old, new in self.mended if mended else ():
            if text.count(old) != 1:
                raise ValueError(
                    f"{self.name}: {old!r} stands {text.count(old)} times in the program"
                )
            text = text.replace(old, new)
        return text


@dataclass
class Outcome:
    """What one climb came to, and in what it is not as it should be."""

    name: str
    wrong: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


def truths() -> dict[str, Truth]:
    data = yaml.safe_load((HERE / "climbs.yaml").read_text(encoding="utf-8"))
    found = {}
    for name, entry in data.items():
        found[name] = Truth(
            name,
            entry["family"],
            entry["story"],
            entry["ranks"],
            entry["rows"],
            tuple(entry["heals"]),
            tuple(entry["heals_not"]),
            tuple(entry["causes"]),
            tuple((one["old"], one["new"]) for one in entry["mended"]),
            tuple(entry.get("knobs", ())),
            tuple(entry.get("args", ())),
            entry.get("nofile"),
        )
    return found


def climbed(
    truth: Truth, *, mended: bool, keep: Path | None = None
) -> tuple[dict[str, Any], float]:
    """Run the public command on the program, under a name that tells nothing; return its report
    and the seconds that it took by our own clock.
    """
    with tempfile.TemporaryDirectory(prefix="climb-") as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "train.py").write_text(truth.text(mended=mended), encoding="utf-8")
        words = [
            sys.executable,
            "-m",
            "trainprobe",
            "diagnose",
            "--ranks",
            RANKS,
            "--rows",
            ROWS,
            "--only",
            "user_script",
            "--ablate",
        ]
        words += [word for knob in truth.knobs for word in ("--knob", knob)]
        words += [
            "--json",
            "report.json",
            "--case",
            "case",
            "--",
            "train.py",
            "--max_train_samples",
            "{rows}",
            *truth.args,
        ]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        began = time.monotonic()
        with (folder / "output.txt").open("w") as output:
            subprocess.run(
                words,
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=PATIENCE_S,
                preexec_fn=lambda: _limit(truth.nofile),
            )
        took_s = time.monotonic() - began
        path = folder / "report.json"
        if not path.exists():
            raise RuntimeError(
                f"{truth.name}: no report; the end of its output:"
                f" {(folder / 'output.txt').read_text()[-2000:]}"
            )
        return json.loads(path.read_text(encoding="utf-8")), took_s


def rejudged(kept: Path, before: dict[str, Any]) -> tuple[dict[str, Any], float | None]:
    """Judge a kept run by the present rules; its time is that of the results `before`, None
    where it was not taken.
    """
    from trainprobe.pipelines import explain
    from trainprobe.report.json_report import report_text

    found: dict[str, Any] = json.loads(report_text(explain(str(kept / "case"))))
    return found, before.get("whole_command_s")


def _limit(nofile: int | None) -> None:
    if nofile is not None:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (nofile, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )


def held_against(truth: Truth, report: dict[str, Any], took_s: float | None) -> Outcome:
    """The broken program: cell, knobs, cause and time."""
    climb, found = report["climb"] or {}, Outcome(truth.name)
    smallest = climb.get("smallest_failing") or {}
    first = (
        report["causes"][0] if report["causes"] else {"id": "", "named": False, "confidence": 0.0}
    )
    healed, not_healed = climb.get("healed_by", []), climb.get("not_healed_by", [])
    cells_s = climb.get("cells_s") or 0.0
    whole_s = max(
        climb.get("total_s") or 0.0, took_s or 0.0
    )  # by our own clock with the start and the judging, where we held it
    found.figures = {
        "family": truth.family,
        "verdict": report["verdict"],
        "smallest_failing": smallest.get("cell", ""),
        "healed_by": healed,
        "not_healed_by": not_healed,
        "steady": climb.get("steady"),
        "cause": first["id"],
        "named": first["named"],
        "confidence": first["confidence"],
        "next": climb.get("next", ""),
        "cells": len([cell for cell in climb.get("cells", []) if cell["took_s"]]),
        "cells_s": cells_s,
        "total_s": climb.get("total_s"),
        "whole_command_s": round(took_s, 1) if took_s is not None else None,
        "over_cells": round(whole_s / cells_s, 3) if cells_s else None,
    }
    checks = {
        f"smallest failing cell {smallest.get('cell')}": (
            (smallest.get("ranks"), smallest.get("rows")) == (truth.ranks, truth.rows)
        ),
        f"healed by {healed}": (
            set(truth.heals) <= set(healed) and not set(truth.heals_not) & set(healed)
        ),
        f"not healed by {not_healed}": not set(truth.heals) & set(not_healed),
        f"first cause {first['id']}, named {first['named']}": (
            first["id"] in truth.causes and first["named"]
        ),
        f"{whole_s:.0f} s for cells of {cells_s:.0f} s": (
            bool(cells_s) and whole_s <= MOST_OVER_CELLS * cells_s
        ),
        f"verdict {report['verdict']}": report["verdict"] in ("hung", "crashed"),
    }
    found.wrong = [says for says, right in checks.items() if not right]
    return found


def mended_against(truth: Truth, report: dict[str, Any], took_s: float | None) -> Outcome:
    """The mended program: healthy, every cell passed."""
    found = Outcome(
        f"{truth.name}, mended",
        figures={
            "verdict": report["verdict"],
            "whole_command_s": round(took_s, 1) if took_s is not None else None,
        },
    )
    cells = (report["climb"] or {}).get("cells", [])
    if (
        report["verdict"] != "healthy"
        or not cells
        or any(cell["outcome"] != "passed" for cell in cells)
    ):
        found.wrong = [
            f"verdict {report['verdict']}",
            *(f"{cell['cell']} {cell['outcome']}" for cell in cells if cell["outcome"] != "passed"),
        ]
    return found


def main() -> int:
    known = truths()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(known)}; all without any")
    parser.add_argument(
        "--keep", type=Path, help="a folder where the runs are kept, to be read afterwards"
    )
    parser.add_argument(
        "--rejudge",
        action="store_true",
        help=(
            "run nothing: judge what --keep holds by the present rules, with the times of"
            " results.json"
        ),
    )
    parser.add_argument("--which", choices=("both", "broken", "mended"), default="both")
    asked = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    wrong = 0
    for name in asked.names or known:
        truth = known[name]
        needs = NEEDS.get(truth.family, "torch")
        if importlib.util.find_spec(needs) is None:
            print(f"{name}: left out, {needs} is not installed", flush=True)
            continue
        for mended in (False, True):
            if asked.which == ("broken" if mended else "mended"):
                continue
            keep = asked.keep / f"{name}{'-mended' if mended else ''}" if asked.keep else None
            row = results.setdefault(name, {})
            report, took_s = (
                rejudged(keep or Path(), row.get("mended", {}) if mended else row)
                if asked.rejudge
                else climbed(truth, mended=mended, keep=keep)
            )
            outcome = (mended_against if mended else held_against)(truth, report, took_s)
            print(
                f"{outcome.name}: {'; '.join(outcome.wrong) or 'as it should be'} "
                f" {json.dumps(outcome.figures)}",
                flush=True,
            )
            wrong += bool(outcome.wrong)
            found = {**outcome.figures, "wrong": outcome.wrong}
            results[name] = {**row, "mended": found} if mended else {**row, **found}
            RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
