"""Holds answers against the truth and counts. Pure; rows in, numbers and tables out."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.gallery.live.calibration import calibration_error
from tests.gallery.live.families import classes_of
from tests.gallery.live.score import BLAMING, wilson

RESULTS = Path(__file__).resolve().parent / "results.json"
NOTHING: Mapping[str, Any] = {"id": "none", "ranks": [], "confidence": 0.0, "named": False}
Row = dict[str, Any]
HEADER = (
    "| jobs | cause and ranks | cause | ranks | class | verdict | called healthy |\n"
    "|---|---|---|---|---|---|---|"
)


def results(path: Path = RESULTS) -> list[Row]:
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return rows


def judged(truth: Mapping[str, Any], answer: Mapping[str, Any]) -> Row:
    """Which parts of an answer are right; `answer` has `verdict` and `causes`.

    An answer of the true cause's class is no wrong class; `unknown` and `none` claim none.
    """
    first: Mapping[str, Any] = next(iter(answer["causes"]), NOTHING)
    ids = (truth["cause"], *truth["also"])
    classes = {name for id_ in ids for name in classes_of(id_)}
    return {
        "healthy": truth["cause"] == "none",
        "answer": first["id"],
        "answered_ranks": list(first["ranks"]),
        "confidence": first["confidence"],
        "named": bool(first.get("named")),
        "cause_right": first["id"] in ids,
        "ranks_right": sorted(first["ranks"]) in [sorted(ranks) for ranks in truth["ranks"]],
        "class_right": first["id"] in ("unknown", "none", *ids)
        or bool(classes_of(first["id"]) & classes),
        "verdict_right": answer["verdict"] in truth["verdicts"],
    }


def broken(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if not row["healthy"]]


def healthy(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["healthy"]]


def right(row: Row) -> bool:
    return bool(row["cause_right"] and row["ranks_right"])


def blamed(row: Row) -> bool:
    return row["verdict"] in BLAMING or row["answer"] not in ("none", "unknown")


MEASURES: Mapping[str, Callable[[Row], bool]] = {
    "cause and ranks": right,
    "cause": lambda row: bool(row["cause_right"]),
    "ranks": lambda row: bool(row["ranks_right"]),
    "class": lambda row: bool(row["class_right"]),
    "verdict": lambda row: bool(row["verdict_right"]),
    "called healthy": lambda row: row["verdict"] == "healthy",
}


def in_short(rows: Sequence[Row]) -> list[tuple[str, str, str]]:
    """What was measured, how often, and the interval in percent."""
    ill, well = broken(rows), healthy(rows)
    table = [
        (f"broken: {name}{'' if name == 'called healthy' else ' right'}", *_share(ill, test))
        for name, test in MEASURES.items()
    ]
    table.append(("healthy: blamed", *_share(well, blamed)))
    table.append(
        ("healthy: called healthy", *_share(well, lambda row: row["verdict"] == "healthy"))
    )
    named = [row for row in ill if row["answer"] not in ("unknown", "none")]
    if named:
        mean = sum(row["confidence"] for row in named) / len(named)
        hits = sum(map(right, named))
        table.append(
            ("confidence of named causes, mean", f"{mean:.2f}", f"right: {hits / len(named):.2f}")
        )
        error = calibration_error([(row["confidence"], right(row)) for row in named])
        table.append(("calibration error", f"{error:.3f}", ""))
    return table


def by(rows: Sequence[Row], key: str) -> str:
    """One line for each value of `mechanism`, `family`, `framework` or another key of the truth."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in broken(rows):
        groups[str(row["truth"][key])].append(row)
    lines = []
    for name, own in sorted(groups.items()):
        low, high = wilson(sum(map(right, own)), len(own))
        counts = [sum(map(test, own)) for test in MEASURES.values()]
        interval = f"{100 * low:.0f} to {100 * high:.0f} %"
        lines.append(
            f"| {name} | {len(own)} | {counts[0]} ({interval}) | {' | '.join(map(str, counts[1:]))} |"
        )
    return "\n".join([f"| {key} {HEADER}".replace("\n|", "\n|---|", 1), *lines])


def _share(rows: Sequence[Row], test: Callable[[Row], bool]) -> tuple[str, str]:
    hits = sum(map(test, rows))
    low, high = wilson(hits, len(rows))
    return f"{hits} of {len(rows)}", f"{100 * low:.0f} to {100 * high:.0f} %"
