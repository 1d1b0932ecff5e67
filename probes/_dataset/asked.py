"""What the user asked for: by flags, by the ladder's environment, or by what is planned."""

from __future__ import annotations

import os
from typing import List, Optional, Tuple

import _emit
from _dataset.course import FURTHER, ROWS, WORKERS, Asked

WITHOUT_LADDER_S = 170.0


def asked(dataset: str, rows: Optional[List[int]], workers: Optional[List[int]]) -> Asked:
    """Put together the course; flags come first. Answers `cannot` where a number is none."""
    given = tuple(sorted(set(rows or _listed("TRAINPROBE_ROWS"))))
    most = _emit.number_from_environment("TRAINPROBE_PLANNED_ROWS", 0) or FURTHER[-1]
    planned = _emit.number_from_environment("TRAINPROBE_PLANNED_WORKERS", 0)
    counts = workers or _listed("TRAINPROBE_WORKERS") or [0, planned or WORKERS[-1]]
    batch = _emit.number_from_environment("TRAINPROBE_BATCH_SIZE", 0)
    return Asked(
        dataset,
        os.environ.get("TRAINPROBE_COLLATE", ""),
        grown(given or ROWS),
        tuple(sorted(set(counts))),
        batch or None,
        _emit.number_from_environment("TRAINPROBE_NPROC", 1, 1),
        _deadline_s(),
        () if given else tuple(size for size in FURTHER if size <= most),
    )


def grown(sizes: Tuple[int, ...]) -> Tuple[int, ...]:
    """One number is the most: sizes in steps of three below it, so that a law can be read off them."""
    if len(sizes) > 1:
        return sizes
    most = sizes[0]
    return tuple(sorted({min(2, most), *(most // part for part in (27, 9, 3) if most // part >= 2), most}))


def _listed(name: str) -> List[int]:
    text = os.environ.get(name, "").strip()
    try:
        found = [int(one) for one in text.split(",") if one.strip()]
    except ValueError:
        _emit.result("cannot", f"{name}={text!r} is not a list of numbers.")
    if any(one < 0 for one in found):
        _emit.result("cannot", f"{name}={text!r} has a number below zero.")
    return found


def _deadline_s() -> float:
    text = os.environ.get("TRAINPROBE_DEADLINE_S", "").strip()
    try:
        return float(text) if text else WITHOUT_LADDER_S
    except ValueError:
        _emit.result("cannot", f"TRAINPROBE_DEADLINE_S={text!r} is not a number.")
