"""The request, from flags, from the environment, or from what is planned."""

from __future__ import annotations

import os
from typing import List, Optional, Tuple

import _emit
from _scaled_dataset.trial import FURTHER, ROWS, WORKERS, DatasetRequest

WITHOUT_LADDER_S = 170.0


def read_request(
    dataset: str, rows: Optional[List[int]], workers: Optional[List[int]]
) -> DatasetRequest:
    """Put together the course; flags come first. Answers `cannot` where a number is none."""
    sizes = tuple(sorted(set(rows or _listed("TRAINPROBE_ROWS"))))
    most = _emit.number_from_environment("TRAINPROBE_PLANNED_ROWS", 0) or FURTHER[-1]
    planned = _emit.number_from_environment("TRAINPROBE_PLANNED_WORKERS", 0)
    counts = workers or _listed("TRAINPROBE_WORKERS") or [0, planned or WORKERS[-1]]
    batch = _emit.number_from_environment("TRAINPROBE_BATCH_SIZE", 0)
    return DatasetRequest(
        dataset,
        os.environ.get("TRAINPROBE_COLLATE", ""),
        grown(sizes or ROWS),
        tuple(sorted(set(counts))),
        batch or None,
        _emit.number_from_environment("TRAINPROBE_NPROC", 1, 1),
        _emit.seconds_from_environment("TRAINPROBE_DEADLINE_S", WITHOUT_LADDER_S),
        () if sizes else tuple(size for size in FURTHER if size <= most),
    )


def grown(sizes: Tuple[int, ...]) -> Tuple[int, ...]:
    """From one number, the largest, make sizes in steps of three, so that growth shows."""
    if len(sizes) > 1:
        return sizes
    most = sizes[0]
    return tuple(
        sorted({min(2, most), *(most // part for part in (27, 9, 3) if most // part >= 2), most})
    )


def _listed(name: str) -> List[int]:
    text = os.environ.get(name, "").strip()
    try:
        found = [int(item) for item in text.split(",") if item.strip()]
    except ValueError:
        _emit.result("cannot", f"{name}={text!r} is not a list of numbers.")
    if any(item < 0 for item in found):
        _emit.result("cannot", f"{name}={text!r} has a number below zero.")
    return found
