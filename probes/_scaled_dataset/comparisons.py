"""Compares what several processes saw of the same data, and reports the numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterator, List
from typing import Counter as Counts

import _emit
from _scaled_dataset import failures
from _scaled_dataset.cells import CellRun, ChildRun
from _scaled_dataset.failures import Failure

UNITS = {"dataset.length": "rows"}
NAMES = {"dataset.length": "rows", "dataset.keys": "keys in a sample"}
WHERE = {
    "pickled": "after a round trip through pickle",
    "worker": "in a forked worker",
    "worker-spawn": "in a spawned worker",
}
REPEATED_SHARE = 0.05  # padding at the end of an epoch repeats fewer


def round_trip(
    run: ChildRun, task: Dict[str, Any], cell: CellRun, dataset: str
) -> Iterator[Failure]:
    """Send length, keys and values through each process; yield what was lost or empty."""
    for line in run.of("unsteady") + run.of("unchecked"):
        _emit.check("data.compared", "unknown", line["says"])
    for line in run.of("pickled"):
        rows = line["rows"] if line["rows"] is not None else task["rows"][-1]
        for name, value, unit in (
            ("bytes", line["size"], "bytes"),
            ("dumps_s", line["dumps_s"], "s"),
            ("loads_s", line["loads_s"], "s"),
        ):
            _emit.measure(f"pickle.{name}", value, unit, rows=rows)
    by_where = {line["where"]: line["measures"] for line in run.of("compared")}
    for where, found in by_where.items():
        for name, value in found.items():
            _emit.measure(name, value, UNITS.get(name, ""), where=where)
    yield from _empty(run, by_where)
    for where in [name for name in WHERE if name in by_where]:
        sentence = _lost(by_where.get("parent", {}), by_where[where], where)
        if sentence:
            yield Failure("lost", sentence, {"where": where})
            break
    for line in [
        line
        for line in run.of("raised")
        if line.get("soft") and line["kind"] in ("unpicklable", "lost")
    ]:
        found_failure = failures.raised(line, run, task, dataset)
        what = (
            "The data set cannot be pickled, as spawn and forkserver workers need it"
            if line["kind"] == "unpicklable"
            else "The pickled copy of the data set cannot be read"
        )
        yield found_failure._replace(
            kind=line["kind"], sentence=f"{what}: {line['type']}: {str(line['message'])[:200]}"
        )
    last = failures.of_cell(cell, task, dataset)
    if last is not None:
        yield last


def _empty(run: ChildRun, by_where: Dict[str, Dict[str, int]]) -> Iterator[Failure]:
    lines = run.of("empty")
    if lines and lines[0]["count"]:
        count, of = lines[0]["count"], lines[0]["of"]
        yield Failure(
            "empty",
            f"{count} of {of} samples that were looked at are empty where they are made: no keys,"
            " or nothing in them",
            {"where": "parent"},
        )
        return
    for where in [name for name in WHERE if by_where.get(name, {}).get("dataset.empty_samples")]:
        sentence = f"Samples with content in the parent are empty {WHERE[where]}"
        yield Failure("empty", sentence, {"where": where})
        return


def _lost(before: Dict[str, int], after: Dict[str, int], where: str) -> str:
    for name, what in NAMES.items():
        if name in before and name in after and before[name] != after[name]:
            return f"{before[name]} {what} in the parent are {after[name]} {WHERE[where]}"
    if (
        "dataset.digest" in before
        and "dataset.digest" in after
        and before["dataset.digest"] != after["dataset.digest"]
    ):
        return f"The values of first, middle or last rows differ {WHERE[where]} from the parent"
    return ""


def shards(cell: CellRun, task: Dict[str, Any], alone: ChildRun) -> Iterator[Failure]:
    """Tell what ranks and workers read twice or not at all; yield what is wrong for certain."""
    labels = {"workers": task["workers"], "ranks": task["ranks"], "method": task["method"]}
    shards_read = [(run.rank, line) for run in cell.runs for line in run.of("shard")]
    reference = alone.of("shard")
    if len(shards_read) < task["ranks"] or not reference:
        return
    whole = reference[0]["whole"] and all(line["whole"] for _, line in shards_read)
    readers = {
        (rank, worker): list(digests)
        for rank, line in shards_read
        for worker, digests in line["read"].items()
    }
    if any(item is None for digests in readers.values() for item in digests):
        return
    expected: Counts[int] = Counter(
        item for digests in reference[0]["read"].values() for item in digests
    )
    read_counts: Counts[int] = Counter(item for digests in readers.values() for item in digests)
    rows = sum(read_counts.values())
    twice = sum(max(0, count - max(1, expected[item])) for item, count in read_counts.items())
    _emit.measure("shards.overlap", twice, "rows", **labels)
    if whole:
        missing = sum(max(0, count - read_counts[item]) for item, count in expected.items())
        _emit.measure("shards.missing", missing, "rows", **labels)
        for rank, line in shards_read:
            more = {"rank": rank, "rows": sum(expected.values()), "how": "shards"}
            _emit.measure("batches", line["batches"], "", **more, **labels)
    else:
        missing = 0
    yield from _judged(shards_read, readers, rows, twice, missing, labels, whole=whole)


def _judged(
    shards_read: List[Any],
    readers: Dict[Any, List[int]],
    rows: int,
    twice: int,
    missing: int,
    labels: Dict[str, Any],
    *,
    whole: bool,
) -> Iterator[Failure]:
    within = 0
    for rank, _ in shards_read:
        own = [set(digests) for (reader, _), digests in readers.items() if reader == rank]
        within = max(within, sum(len(item) for item in own) - len(set().union(*own)))
    if within > max(1, REPEATED_SHARE * rows / len(shards_read)):
        sentence = (
            f"The {labels['workers']} workers of one rank read the same rows: {within} rows came"
            " more than once; torch.utils.data.get_worker_info() gives a worker its share"
        )
        _emit.check("data.shards", "warn", f"{sentence}.", within)
        yield Failure("overlap", sentence, dict(labels))
        return
    batches = [line["batches"] for _, line in shards_read]
    if twice > max(1, REPEATED_SHARE * rows):
        sentence = (
            f"All {len(shards_read)} ranks read the same rows ({twice} of {rows} came more than"
            " once). That is right only where the trainer splits the data itself."
        )
        _emit.check("data.shards", "warn", sentence, twice)
    elif whole and max(batches) != min(batches):
        counts = ", ".join(f"rank {rank}: {line['batches']}" for rank, line in shards_read)
        sentence = f"The ranks have different numbers of batches ({counts})"
        yield Failure("uneven", sentence, {**labels, "batches": batches})
    if missing > len(readers) * 8 + REPEATED_SHARE * rows:
        sentence = f"{missing} rows that one process reads alone are read by no rank and no worker"
        _emit.check("data.shards", "warn", f"{sentence}.", missing)
        yield Failure("missing", sentence, dict(labels))


def tell_seeds(run: ChildRun, labels: Dict[str, Any]) -> None:
    """Equal draws break no run, so they are no failure."""
    for line in run.of("drawn"):
        distinct = line["distinct"] if line["own"] is None else min(line["distinct"], line["own"])
        _emit.measure("seeds.distinct", distinct, "", **labels)
        if distinct < line["workers"]:
            what = (
                "the data set's own generator is copied into"
                if line["distinct"] == line["workers"]
                else "worker_init_fn seeds alike"
            )
            sentence = (
                f"{line['workers']} workers draw {distinct} different random numbers: {what} each"
                " of them."
            )
            _emit.check("data.seeds", "warn", sentence, distinct)
