"""Logs out of public threads, collected and labelled by somebody who knew neither rules nor gallery,
and judged once, before anything was mended for them.

    python -m tests.gallery.logs.fresh batch-1             judge it; writes its results.json, once
    python -m tests.gallery.logs.fresh batch-1 --again     judge it with today's rules; writes nothing
    python -m tests.gallery.logs.fresh batch-1 --misses    the same, and show what is not right

Each folder `fresh/batch-N` holds `answers.yaml`, the truth with the address of the thread, and
`cases/ID/`, what a reporter pasted, rendered anew: messages of software, forms of lines and relations
of numbers stay; names, paths, addresses, clock times and people's own sentences are others. The
figures were taken on the pasted text, before; what was found first stays on the accuracy page.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gallery.live.calibration import calibration_error
from tests.gallery.logs.answers import Answer
from tests.gallery.logs.score import alarm, fits, judged

FRESH = Path(__file__).resolve().parent / "fresh"
NOTHING: dict[str, Any] = {"id": "none", "confidence": 0.0}


@dataclass(frozen=True)
class FreshCase:
    """`kind` is hang, crash or healthy; `source` the address of the thread."""

    answer: Answer
    kind: str
    source: str
    folder: Path


def batches() -> list[str]:
    return sorted(path.parent.name for path in FRESH.glob("*/answers.yaml"))


def cases_of(batch: str) -> list[FreshCase]:
    import yaml

    rows = yaml.safe_load((FRESH / batch / "answers.yaml").read_text(encoding="utf-8"))
    return [
        FreshCase(
            Answer(
                str(row["case"]),
                row["cause"],
                tuple(row.get("also") or ()),
                None if row.get("ranks") is None else tuple(row["ranks"]),
                tuple(row["verdict"]),
                "thread",
                batch,
            ),
            row["kind"],
            row["source"],
            FRESH / batch / "cases" / str(row["case"]),
        )
        for row in rows
    ]


def judge_all(cases: Iterable[FreshCase]) -> list[dict[str, Any]]:
    """One row per case: the truth, what the tool says, and whether it is right."""
    rows: list[dict[str, Any]] = []
    for case in cases:
        said = judged([str(case.folder)])
        first: dict[str, Any] = next(iter(said["causes"]), NOTHING)
        rows.append(
            {
                "case": case.answer.case,
                "kind": case.kind,
                "truth": case.answer.cause,
                "answer": first["id"],
                "confidence": first["confidence"],
                "verdict": said["verdict"],
                "verdict_right": said["verdict"] in case.answer.verdict,
                "first": fits(case.answer, said),
                "among_three": fits(case.answer, said, 3),
                "alarm": alarm(case.answer, said),
                **{name: said[name] for name in ("fault", "refused") if name in said},
            }
        )
    return rows


def results_of(batch: str) -> list[dict[str, Any]]:
    """What was found when the batch was judged first."""
    path = FRESH / batch / "results.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    return rows


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of right answers, by kind, and what the confidence was worth."""
    ill = [row for row in rows if row["kind"] != "healthy"]
    sure = [row for row in ill if row["confidence"] >= 0.8 and row["answer"] != "unknown"]

    def count(some: Sequence[Mapping[str, Any]], name: str) -> str:
        return f"{sum(bool(row[name]) for row in some)} of {len(some)}"

    by_kind = {
        kind: count([row for row in ill if row["kind"] == kind], "first")
        for kind in ("crash", "hang")
    }
    pairs = [(row["confidence"], bool(row["first"])) for row in ill if row["answer"] != "unknown"]
    return {
        "first": count(ill, "first"),
        **by_kind,
        "cause known": count([row for row in ill if row["truth"] != "unknown"], "first"),
        "among three": count(ill, "among_three"),
        "verdict": count(ill, "verdict_right"),
        "false alarms": count([row for row in rows if row["kind"] == "healthy"], "alarm"),
        "wrong at 0.8 or more": f"{sum(not row['first'] for row in sure)} of {len(sure)}",
        "calibration error": round(calibration_error(pairs), 3) if pairs else 0.0,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("batch", choices=batches())
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--misses", action="store_true")
    asked = parser.parse_args()
    path = FRESH / asked.batch / "results.json"
    if path.exists() and not (asked.again or asked.misses):
        print(f"{asked.batch} has been judged already: --again shows what today's rules say.")
        return 2
    rows = judge_all(cases_of(asked.batch))
    for name, value in summary(rows).items():
        print(f"{name:22} {value}")
    if asked.misses:
        wrong = [row for row in rows if not row["first"] or not row["verdict_right"]]
        print("\n".join(json.dumps(row) for row in wrong))
    if not (asked.again or asked.misses):
        lines = ",\n".join(json.dumps(row) for row in rows)
        path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
