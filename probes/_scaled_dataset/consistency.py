"""Is the data the same after pickling, in workers, and over the ranks?"""

from __future__ import annotations

import pickle
import time
from typing import Any, Dict, Iterator, List, Optional

from _scaled_dataset import child_report, sample_digests
from _shared import data_sources

SPOTS = 16  # rows that are looked at for emptiness
ROWS_OF_A_STREAM = 3


def round_trip(job: Any) -> None:
    """Compare rows after a round trip through pickle, a forked and a spawned worker."""
    source = job.sources(job.task["rows"][-1])[0]
    if source.kind == "opaque":
        child_report.tell(
            "unchecked",
            says="It makes its own batches, so its data set could not be read separately.",
        )
        return
    dataset = source.dataset
    spots = [] if source.streams else _spots(len(dataset))
    with child_report.phase("reading first, middle and last rows"):
        shapes = [sample_digests.shape(row) for row in _rows(dataset, spots)]
        again = [sample_digests.shape(row) for row in _rows(dataset, spots)]
    digest = sample_digests.combined(shapes)
    steady = digest is not None and digest == sample_digests.combined(again)
    length = data_sources.length_of(source)
    _tell("parent", length, shapes, digest if steady else None)
    _tell_empty(dataset, source, shapes)
    if not steady:
        child_report.tell(
            "unsteady",
            says=(
                "Two reads of one row differ, or hold objects that cannot be compared; values are"
                " not compared."
            ),
        )
    there = _pickled(dataset, spots, length, steady=steady)
    _in_worker(dataset, spots, "fork", "worker", steady=steady, streams=source.streams)
    if time.perf_counter() < job.until and there is not None:
        # Rows that its copy has not are not asked of it: how many it has is the answer then.
        steady = steady and len(there) == len(spots)
        _in_worker(
            dataset, there or spots, "spawn", "worker-spawn", steady=steady, streams=source.streams
        )


def _spots(length: int) -> List[int]:
    return sorted({0, length // 2, length - 1})


def _rows(dataset: Any, spots: List[int]) -> List[Any]:
    if spots:
        return [dataset[spot] for spot in spots]
    return [row for row, _ in zip(iter(dataset), range(ROWS_OF_A_STREAM))]


def _tell(
    where: str, length: Optional[int], shapes: List[sample_digests.Shape], digest: Optional[int]
) -> None:
    found: Dict[str, Any] = {
        "dataset.keys": shapes[0].keys if shapes else 0,
        "dataset.empty_samples": sum(item.empty for item in shapes),
    }
    if length is not None:
        found["dataset.length"] = length
    if digest is not None:
        found["dataset.digest"] = digest
    child_report.tell("compared", where=where, measures=found)


def _tell_empty(
    dataset: Any, source: data_sources.Source, shapes: List[sample_digests.Shape]
) -> None:
    """Count empty rows among those at even distances, too."""
    spread: Iterator[Any] = iter(())
    if not source.streams:
        length = len(dataset)
        spread = (dataset[place * length // SPOTS] for place in range(min(SPOTS, length)))
    with child_report.phase("reading rows at even distances"):
        empty = sum(sample_digests.is_empty(row) for row in spread)
    of = max(len(shapes), 0 if source.streams else min(SPOTS, len(dataset)))
    child_report.tell(
        "empty", where="parent", count=max(empty, sum(item.empty for item in shapes)), of=of
    )


def _pickled(
    dataset: Any, spots: List[int], length: Optional[int], *, steady: bool
) -> Optional[List[int]]:
    """Return those of `spots` that the copy has; None where there is no copy."""
    try:
        with child_report.phase("pickling"):
            began = time.perf_counter()
            text = pickle.dumps(dataset, protocol=pickle.HIGHEST_PROTOCOL)
            dumps_s = time.perf_counter() - began
        with child_report.phase("unpickling"):
            began = time.perf_counter()
            copy = pickle.loads(text)  # noqa: S301 - made above, in this process
            loads_s = time.perf_counter() - began
    except Exception as error:
        # whatever a stranger's __getstate__ raises: it is what is asked for here
        child_report.failed(error, soft=True, kind="unpicklable")
        return None
    child_report.tell("pickled", size=len(text), dumps_s=dumps_s, loads_s=loads_s, rows=length)
    try:
        with child_report.phase("reading the pickled copy"):
            there = None if length is None else len(copy)
            spots_left = [spot for spot in spots if there is None or spot < there]
            rows = _rows(copy, spots_left) if spots_left or not spots else []
    except Exception as error:  # a copy that cannot be read is the answer
        child_report.failed(error, soft=True, kind="lost", where="pickled")
        return spots
    shapes = [sample_digests.shape(row) for row in rows]
    _tell(
        "pickled",
        there,
        shapes,
        sample_digests.combined(shapes) if steady and len(spots_left) == len(spots) else None,
    )
    return spots_left


def _in_worker(
    dataset: Any, spots: List[int], method: str, where: str, *, steady: bool, streams: bool
) -> None:
    import torch.utils.data

    settings: Dict[str, Any] = {"batch_size": max(1, len(spots))}
    if not streams:
        settings["sampler"] = spots
    else:
        settings["batch_size"] = ROWS_OF_A_STREAM
    try:
        with child_report.phase(f"reading by a worker ({method})"):
            loader = torch.utils.data.DataLoader(
                dataset,
                num_workers=1,
                multiprocessing_context=method,
                collate_fn=sample_digests.Digests(),
                **settings,
            )
            found: List[Any] = next(iter(loader), [])
    except Exception as error:
        # a worker that fails here fails in the loader's own cells too, where it counts
        child_report.failed(error, soft=True, kind="worker", where=where, method=method)
        return
    shapes = [sample_digests.Shape(keys, digest, empty) for _, keys, digest, empty, _ in found]
    lengths = [length for *_, length in found if length >= 0]
    value = lengths[0] if lengths else None
    _tell(where, value, shapes, sample_digests.combined(shapes) if steady else None)


def shards(job: Any) -> None:
    """Report what this rank and its workers read, in digests, and what the workers draw."""
    source, task = job.sources(job.task["rows"][-1])[0], job.task
    if source.kind == "opaque":
        return
    read: Dict[str, List[Optional[int]]] = {}
    batches, rows_read, whole = 0, 0, True
    with child_report.phase("reading what is this rank's"):
        for batch in data_sources.loader(
            source, job.want(task["shard_rows"] * task["ranks"], collate=sample_digests.Digests())
        ):
            batches += 1
            for worker, _, digest, _, _ in batch:
                read.setdefault(str(worker), []).append(digest)
            rows_read += len(batch)
            child_report.tell("tick", rows=rows_read)
            if rows_read >= task["shard_rows"] or time.perf_counter() > job.until:
                whole = False
                break
    child_report.tell(
        "shard",
        read=read,
        batches=batches,
        rows=rows_read,
        whole=whole,
        streams=source.streams,
        kind=source.kind,
    )


def draws(job: Any, source: data_sources.Source) -> None:
    """Draw from every generator in each worker; row 0 shows whether the data set draws itself."""
    import torch.utils.data

    workers, dataset = job.task["workers"], source.dataset
    drawn: List[Any] = []
    own = source.data if source.kind == "loader" else None
    settings: Dict[str, Any] = {} if source.streams else {"sampler": [0] * workers}
    try:
        with child_report.phase("drawing in each worker"):
            random = not source.streams and sample_digests.digest(
                [dataset[0]]
            ) != sample_digests.digest([dataset[0]])
            init = own.worker_init_fn if own is not None else None
            loader = torch.utils.data.DataLoader(
                dataset,
                batch_size=1,
                num_workers=workers,
                multiprocessing_context=job.task["method"],
                collate_fn=sample_digests.Draws(),
                worker_init_fn=init,
                **settings,
            )
            drawn += [row for row, _ in zip(loader, range(workers))]
    except Exception as error:
        # rows of a loader's data may have no number 0; reading has just worked, so this is no fault
        child_report.failed(error, soft=True, kind="draws")
        return
    if len({worker for worker, *_ in drawn}) == workers:
        of_generators = [
            len({row[place] for row in drawn})
            for place in (1, 2, 3)
            if all(row[place] is not None for row in drawn)
        ]
        own_draws = (
            len({row[4] for row in drawn})
            if random and all(row[4] is not None for row in drawn)
            else None
        )
        child_report.tell("drawn", workers=workers, distinct=min(of_generators), own=own_draws)
