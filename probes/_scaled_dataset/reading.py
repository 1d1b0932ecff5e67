"""Reads the user's data as a training loop would, in this process, and measures it."""

from __future__ import annotations

import gc
import time
from typing import Any, Dict, NamedTuple, Optional

from _scaled_dataset import child_report, process_usage, sample_digests
from _shared import data_sources

TICK_S = 1.0
LOOK_S = 0.7


class Epoch(NamedTuple):
    """One pass: `first_s` to the first batch, `rest_s` from there; `whole`: it was not cut off."""

    first_s: float
    rest_s: float
    batches: int
    rows: int
    whole: bool
    high: process_usage.Usage
    worker_growth: int
    parent_growth: int


def epoch(
    batches: Any, want: data_sources.Want, until: float, pid: int, shm_before: int, batch_rows: int
) -> Epoch:
    """Read to the end, `want.rows` rows of this rank's share, or `until` (perf_counter)."""
    share = -(-want.rows // want.ranks)
    began = time.perf_counter()
    iterator = iter(batches)
    first_s, count, rows_read, whole, aside = 0.0, 0, 0, True, 0.0
    high = begin = now = process_usage.most([])
    ticked = looked = began
    last_of = _length(batches)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            break
        at = time.perf_counter()
        count, rows_read = count + 1, rows_read + sample_digests.rows_in(batch, batch_rows)
        del batch
        first = count == 1
        if first:
            first_s = at - began
            child_report.tell("tick", batches=count, rows=rows_read)
        last = rows_read >= share or count == last_of
        if first or last or at - looked > LOOK_S + 10 * aside / max(count, 1):
            now = process_usage.look(pid, shm_before)
            begin, high = (now if first else begin), process_usage.most([high, now])
            looked = time.perf_counter()
            aside += looked - at
        if at - ticked > TICK_S:
            child_report.tell("tick", batches=count, rows=rows_read)
            ticked = at
        if rows_read >= share and want.rows:
            break
        if at > until:
            whole = False
            break
    took_s = time.perf_counter() - began - aside
    del iterator
    return Epoch(
        first_s or took_s,
        max(0.0, took_s - first_s),
        count,
        rows_read,
        whole,
        high,
        now.worker_private - begin.worker_private,
        now.parent_private - begin.parent_private,
    )


AHEAD = 8  # times the workers


def numbers(read: Epoch, workers: int) -> Dict[str, Any]:
    """The measures of one epoch: name → (value, unit); no times of a whole for a cut or short pass.
    Workers read ahead (two batches each) during the first wait, so a short pass seems free.
    """
    found: Dict[str, Any] = {"first_batch_s": (read.first_s, "s"), "batches": (read.batches, "")}
    took_s = read.rest_s if workers else read.first_s + read.rest_s
    if workers:
        found["startup_s"] = (read.first_s, "s")
    if read.whole and read.batches >= AHEAD * workers:
        found["took_s"] = (took_s, "s")
    if read.rows and read.first_s + read.rest_s > 0:
        found["rows_per_s"] = (read.rows / (read.first_s + read.rest_s), "1/s")
    return found


def fresh() -> None:
    """Give back what an earlier size held, so that the next one is measured alone."""
    import ctypes

    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)


def _length(batches: Any) -> Optional[int]:
    try:
        return len(batches)
    except Exception:
        # a stream has none, and a user's len may raise what it likes; reading on tells
        return None
