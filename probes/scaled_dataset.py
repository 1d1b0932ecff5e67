# /// trainprobe
# rung: 90
# question: Does a DataLoader keep its speed, memory and descriptors as rows and workers grow?
# scope: host
# needs: [torch]
# timeout_s: 180
# climbs: []
# after: [environment]
# means: Loading breaks or degrades with more rows or workers. With built-in rows, shared
#   memory, descriptors, memory or process limits are at fault; otherwise the data.
# ///
"""Read rows through torch's DataLoader at growing sizes and numbers of workers, and measure what
each takes: built-in ones of 1 KiB, or the user's own.

Flags: --rows N,… (100,1000,10000), --workers N,… (0,2), --batch N (64), --timeout-s S (for one
batch).
Measures for each cell: time to the first batch, rows a second, and the most memory (PSS with the
workers), descriptors and /dev/shm held. With --dataset (or TRAINPROBE_DATASET) the
user's objects are only touched in children: see `_scaled_dataset`.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from typing import Any, Dict, List, NoReturn, Optional, Tuple

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit

FLOATS = 256
Cell = Tuple[int, int]  # rows, workers
UNITS = {"first_batch_s": "s", "took_s": "s", "rows_per_s": "1/s", "pss": "bytes", "shm": "bytes"}


class Rows:
    """Row i is 256 floats of i % 1000, made on demand; a map-style dataset needs no more."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> Any:
        import torch

        return torch.full((FLOATS,), float(row % 1000))


def held(workers: Any) -> Tuple[int, int, int]:
    """PSS bytes of this process and its workers, its descriptors, and bytes in /dev/shm."""
    pss, shm = 0, None
    for pid in ["self", *(worker.pid for worker in workers)]:
        with (
            contextlib.suppress(OSError),
            open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as file,
        ):
            found = re.search(r"^Pss: +(\d+)", file.read(), re.MULTILINE)
            pss += int(found.group(1)) * 1024 if found else 0
    with contextlib.suppress(OSError):
        shm = os.statvfs("/dev/shm")  # noqa: S108 - the place that is measured
    return (
        pss,
        len(os.listdir("/proc/self/fd")),
        (shm.f_blocks - shm.f_bfree) * shm.f_frsize if shm else 0,
    )


def read_all(torch: Any, cell: Cell, batch_rows: int, timeout_s: float) -> Dict[str, float]:
    """Read one epoch; raise ValueError where a row is missing or wrong."""
    rows, workers = cell
    before, began, first_s, rows_read, total = held(()), time.perf_counter(), 0.0, 0, 0.0
    most = list(before)
    loader = torch.utils.data.DataLoader(
        Rows(rows), batch_size=batch_rows, num_workers=workers, timeout=timeout_s if workers else 0
    )
    batches = iter(loader)
    look_every = max(1, rows // batch_rows // 8)
    for place, batch in enumerate(batches):
        first_s = first_s or time.perf_counter() - began
        rows_read, total = rows_read + len(batch), total + float(batch[:, 0].sum())
        if place % look_every == 0:
            most = [
                max(item, other)
                for item, other in zip(most, held(getattr(batches, "_workers", ())))
            ]
    took_s = time.perf_counter() - began
    if rows_read != rows or total != sum(row % 1000 for row in range(rows)):
        raise ValueError(f"{rows_read} of {rows} rows came, with sum {total:g}")
    return {
        "first_batch_s": first_s,
        "rows_per_s": rows / took_s,
        "took_s": took_s,
        "pss": most[0],
        "fds": most[1],
        "shm": max(0, most[2] - before[2]),
    }


def numbers(text: str) -> Any:
    return [int(item) for item in text.split(",")]


def take_the_users(
    dataset: str, rows: Optional[List[int]], workers: Optional[List[int]]
) -> NoReturn:
    """Run the user's own data; this process imports none of it, and no torch."""
    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    from _scaled_dataset.trial import DatasetTrial, read_request

    DatasetTrial(read_request(dataset, rows, workers)).run()


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    parser.text("--dataset", "TRAINPROBE_DATASET")
    parser.add_argument("--rows", type=numbers)
    parser.add_argument("--workers", type=numbers)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--timeout-s", type=float, default=60.0)
    asked = parser.parse_args()
    if asked.dataset:
        take_the_users(asked.dataset, asked.rows, asked.workers)
    asked.rows, asked.workers = asked.rows or [100, 1000, 10000], asked.workers or [0, 2]
    if min(asked.rows) < 1 or min(asked.workers) < 0 or asked.batch < 1 or asked.timeout_s <= 0:
        _emit.result(
            "cannot", "--rows, --batch and --timeout-s must be above zero, --workers not below it."
        )
    with _emit.phase("import:torch"):
        import torch
        import torch.utils.data
    torch.set_num_threads(1)
    bad = []
    for workers in asked.workers:
        paces, fds = [], []
        for rows in asked.rows:
            try:
                with _emit.phase(f"rows={rows},workers={workers}"):
                    found = read_all(torch, (rows, workers), asked.batch, asked.timeout_s)
            except Exception as error:
                # a worker that died, too many open files, a full /dev/shm: the answer
                bad.append(f"rows={rows},workers={workers}")
                sentence = f"Reading {rows} rows with {workers} workers failed"
                _emit.fail_exception(sentence, error, rows=rows, workers=workers)
                break
            for name, value in found.items():
                _emit.measure(
                    name, round(value, 5), UNITS.get(name, ""), rows=rows, workers=workers
                )
            paces.append((found["took_s"] - found["first_batch_s"]) / rows)
            fds.append(found["fds"])
        # a proposal: faster than linear, and enough to matter
        if len(paces) > 1 and paces[-1] > 3 * paces[-2] and paces[-1] * asked.rows[-1] > 1:
            sentence = (
                f"With {workers} workers a row takes {paces[-1] / paces[-2]:.1f} times as long at"
                f" {asked.rows[-1]} rows."
            )
            _emit.check("data.scale", "warn", sentence, paces)
        if len(fds) > 2 and fds[0] + 8 < fds[1] < fds[2] - 8:
            sentence = f"With {workers} workers the open descriptors grow with the rows: {fds}."
            _emit.check("data.fds", "warn", sentence, fds)
    if bad:
        _emit.result("no", f"Loading failed at {'; '.join(bad)}.")
    sentence = f"Up to {max(asked.rows)} rows and {max(asked.workers)} workers load right."
    _emit.result("yes", sentence)


if __name__ == "__main__":
    main()
