"""Holds against each other what several processes saw of the same data, and tells the numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterator, List
from typing import Counter as Counts

import _emit
from _dataset import failures
from _dataset.children import Cell, Said
from _dataset.failures import Failure

UNITS = {"dataset.length": "rows"}
NAMES = {"dataset.length": "rows", "dataset.keys": "keys in a sample"}
WHERE = {"pickled": "after a round trip through pickle", "worker": "in a forked worker", "worker-spawn": "in a spawned worker"}
TOLD_TWICE = 0.05  # padding at the end of an epoch repeats fewer


def round_trip(said: Said, task: Dict[str, Any], cell: Cell, dataset: str) -> Iterator[Failure]:
    """Tell length, keys and values in each process; yield what was lost on the way, and what was empty from the start."""
    for line in said.of("unsteady") + said.of("unchecked"):
        _emit.note(line["says"], check="data.compared", status="unknown")
    for line in said.of("pickled"):
        rows = line["rows"] if line["rows"] is not None else task["rows"][-1]
        for name, value, unit in (("bytes", line["size"], "bytes"), ("dumps_s", line["dumps_s"], "s"), ("loads_s", line["loads_s"], "s")):
            _emit.measure(f"pickle.{name}", value, unit, rows=rows)
    by_where = {line["where"]: line["measures"] for line in said.of("compared")}
    for where, found in by_where.items():
        for name, value in found.items():
            _emit.measure(name, value, UNITS.get(name, ""), where=where)
    yield from _empty(said, by_where)
    for where in [name for name in WHERE if name in by_where]:
        says = _lost(by_where.get("parent", {}), by_where[where], where)
        if says:
            yield Failure("lost", says, {"where": where})
            break
    for line in [line for line in said.of("raised") if line.get("soft") and line["kind"] in ("unpicklable", "lost")]:
        found_failure = failures.raised(line, said, task, dataset)
        what = (
            "The data set cannot be pickled, as spawn and forkserver workers need it"
            if line["kind"] == "unpicklable"
            else "The pickled copy of the data set cannot be read"
        )
        yield found_failure._replace(kind=line["kind"], says=f"{what}: {line['type']}: {str(line['message'])[:200]}")
    last = failures.of_cell(cell, task, dataset)
    if last is not None:
        yield last


def _empty(said: Said, by_where: Dict[str, Dict[str, int]]) -> Iterator[Failure]:
    lines = said.of("empty")
    if lines and lines[0]["count"]:
        count, of = lines[0]["count"], lines[0]["of"]
        yield Failure("empty", f"{count} of {of} samples that were looked at are empty where they are made: no keys, or nothing in them", {"where": "parent"})
        return
    for where in [name for name in WHERE if by_where.get(name, {}).get("dataset.empty_samples")]:
        yield Failure("empty", f"Samples that hold something in the parent come back empty {WHERE[where]}", {"where": where})
        return


def _lost(before: Dict[str, int], after: Dict[str, int], where: str) -> str:
    for name, what in NAMES.items():
        if name in before and name in after and before[name] != after[name]:
            return f"{before[name]} {what} in the parent are {after[name]} {WHERE[where]}"
    if "dataset.digest" in before and "dataset.digest" in after and before["dataset.digest"] != after["dataset.digest"]:
        return f"The values of first, middle or last rows are others {WHERE[where]} than in the parent"
    return ""


def shards(cell: Cell, task: Dict[str, Any], alone: Said) -> Iterator[Failure]:
    """Tell what ranks and workers read twice or not at all; yield what is wrong for certain."""
    labels = {"workers": task["workers"], "ranks": task["ranks"], "method": task["method"]}
    told = [(said.rank, line) for said in cell.said for line in said.of("shard")]
    reference = alone.of("shard")
    if len(told) < task["ranks"] or not reference:
        return
    whole = reference[0]["whole"] and all(line["whole"] for _, line in told)
    readers = {(rank, worker): list(digests) for rank, line in told for worker, digests in line["read"].items()}
    if any(one is None for digests in readers.values() for one in digests):
        return
    expected: Counts[int] = Counter(one for digests in reference[0]["read"].values() for one in digests)
    seen: Counts[int] = Counter(one for digests in readers.values() for one in digests)
    rows = sum(seen.values())
    twice = sum(max(0, count - max(1, expected[one])) for one, count in seen.items())
    _emit.measure("shards.overlap", twice, "rows", **labels)
    if whole:
        missing = sum(max(0, count - seen[one]) for one, count in expected.items())
        _emit.measure("shards.missing", missing, "rows", **labels)
        for rank, line in told:
            _emit.measure("batches", line["batches"], "", rank=rank, rows=sum(expected.values()), how="shards", **labels)
    else:
        missing = 0
    yield from _judged(told, readers, rows, twice, missing, labels, whole=whole)


def _judged(told: List[Any], readers: Dict[Any, List[int]], rows: int, twice: int, missing: int, labels: Dict[str, Any], *, whole: bool) -> Iterator[Failure]:
    within = 0
    for rank, _ in told:
        own = [set(digests) for (reader, _), digests in readers.items() if reader == rank]
        within = max(within, sum(len(one) for one in own) - len(set().union(*own)))
    if within > max(1, TOLD_TWICE * rows / len(told)):
        says = f"The {labels['workers']} workers of one rank read the same rows: {within} rows came more than once; torch.utils.data.get_worker_info() tells a worker its part"
        _emit.note(f"{says}.", check="data.shards", status="warn", value=within)
        yield Failure("overlap", says, dict(labels))
        return
    batches = [line["batches"] for _, line in told]
    if twice > max(1, TOLD_TWICE * rows):
        _emit.note(
            f"All {len(told)} ranks read the same rows ({twice} of {rows} came more than once). That is right only where the trainer splits the data itself.",
            check="data.shards",
            status="warn",
            value=twice,
        )
    elif whole and max(batches) != min(batches):
        counts = ", ".join(f"rank {rank}: {line['batches']}" for rank, line in told)
        yield Failure("uneven", f"The ranks have different numbers of batches ({counts})", {**labels, "batches": batches})
    if missing > len(readers) * 8 + TOLD_TWICE * rows:
        says = f"{missing} rows that one process reads alone are read by no rank and no worker"
        _emit.note(f"{says}.", check="data.shards", status="warn", value=missing)
        yield Failure("missing", says, dict(labels))


def tell_seeds(said: Said, labels: Dict[str, Any]) -> None:
    """Equal draws break no run, so they are no failure."""
    for line in said.of("drawn"):
        distinct = line["distinct"] if line["own"] is None else min(line["distinct"], line["own"])
        _emit.measure("seeds.distinct", distinct, "", **labels)
        if distinct < line["workers"]:
            what = "the data set's own generator is copied into" if line["distinct"] == line["workers"] else "worker_init_fn seeds alike"
            says = f"{line['workers']} workers draw {distinct} different random numbers: {what} each of them."
            _emit.note(says, check="data.seeds", status="warn", value=distinct)
