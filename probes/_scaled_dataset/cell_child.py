"""One child of `scaled_dataset`: takes the user's data through one task, named by a JSON text as
its only argument, and tells what it sees.

A spawned worker runs this file's head again, as Python has it, so nothing starts outside of `main`.
Nothing is answered here: the probe concludes.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import signal
import sys
import time
from typing import Any, Dict, List, Optional, Set, Tuple

_HERE = os.path.dirname(os.path.realpath(__file__))
_PROBES = os.path.dirname(_HERE)
sys.path[:] = [_PROBES, *(entry for entry in sys.path if os.path.realpath(entry or ".") != _HERE)]
from _scaled_dataset import child_report, consistency, process_usage, reading  # noqa: E402
from _shared import data_sources  # noqa: E402
from _shared.child_program import summary_of  # noqa: E402
from _shared.named_object import NamedObjectError, load_named_object  # noqa: E402

sys.path.remove(_PROBES)  # what the probes are called must not shadow what the user imports

if __name__ != "__main__":  # a spawned worker: it can be asked for its stack as its parent can
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)


REBUILD_SHARE = 0.02  # of the time that is left; a factory that takes longer is called once
BRIEF_S = 1.0
STEP = 4  # times the last size: from there on its own growth foretells the next one
FREE_STEP = 10  # even a cube would then take a thousand times next to nothing
CUBE = 3  # the steepest growth that loading is known for
STEEPEST = 4.0
TELLING_S = 0.05  # less than this is noise, and no growth
HELD_FDS = 4  # libraries open as many by themselves


class Job:
    """A task, and what the user named, loaded once."""

    def __init__(self, task: Dict[str, Any]) -> None:
        self.task, self.began = task, time.perf_counter()
        self.until = self.began + task["soft_s"]
        self.shm_before = task["shm_before"]
        with child_report.phase(f"import of {task['dataset']}"):
            self.found = load_named_object(task["dataset"])
        self.collate = None
        if task["collate"]:
            with child_report.phase(f"import of {task['collate']}"):
                self.collate = load_named_object(task["collate"])
                if isinstance(self.collate, type):
                    self.collate = self.collate()

    def sources(self, rows: int) -> List[data_sources.Source]:
        """Call the factory, with `rows` if it takes them. Raises its errors and NonsenseError."""
        pid, before, open_before = os.getpid(), time.perf_counter(), _open()
        takes = data_sources.takes_rows(self.found)
        with child_report.phase("factory", **({"rows": rows} if takes else {})):
            made = data_sources.call(self.found, rows)
            # the factory forked, and this is the child: it must not go on in its parent's name
            if os.getpid() != pid:
                child_report.of_a_fork("forked")
                os._exit(0)
            found = data_sources.sources_of(made)
        build_s = time.perf_counter() - before
        closed = open_before - _open()
        if closed & {0, 1, 2} or len(closed) > 2:  # libraries close some of their own
            child_report.tell("closed", fds=len(closed))
        full = None
        with child_report.phase("len()", rows=rows):
            for source in found:
                length = data_sources.length_of(source)
                full = length if source is found[0] else full
        child_report.tell(
            "built",
            rows=rows if takes or full is None else full,
            build_s=build_s,
            takes_rows=takes,
            full=full,
            sources=[_described(item) for item in found],
        )
        return found

    def want(self, rows: int, **changes: Any) -> data_sources.Want:
        task = self.task
        made = data_sources.Want(
            rows,
            task["workers"],
            task["method"],
            task["ranks"],
            task["rank"],
            task["batch"],
            self.collate,
        )
        return made._replace(**changes)

    def stacked(self, source: data_sources.Source, want: data_sources.Want) -> data_sources.Want:
        """Leave samples unstacked if the user gave no collate function and torch's cannot stack."""
        if want.collate is not None or source.kind in ("loader", "opaque"):
            return want
        if self.task["stack"] == "list":
            return want._replace(collate=data_sources.as_list)
        if self.task["stack"] == "torch":
            return want
        import torch.utils.data

        raw = next(
            iter(
                data_sources.loader(
                    source,
                    want._replace(collate=data_sources.as_list, workers=0, method="none", ranks=1),
                )
            )
        )
        try:
            torch.utils.data.default_collate(raw)
        except Exception as error:
            # told apart from the user's own faults: reading these rows has just worked
            self.task["stack"] = "list"
            child_report.tell("unstackable", says=f"{summary_of(error)}")
            return want._replace(collate=data_sources.as_list)
        self.task["stack"] = "torch"
        child_report.tell("stackable")
        return want


def _open() -> Set[int]:
    try:
        return {int(name) for name in os.listdir("/proc/self/fd")}
    except OSError:  # no descriptor is left to read the folder with
        return set()


def _described(source: data_sources.Source) -> Dict[str, Any]:
    own = source.data if source.kind == "loader" else None
    context = getattr(own, "multiprocessing_context", None)
    return {
        "name": source.name,
        "kind": source.kind,
        "streams": source.streams,
        "type": type(source.data).__name__,
        "workers": own.num_workers if own is not None else None,
        "method": context.get_start_method() if context is not None else None,
        "batch": own.batch_size if own is not None else None,
    }


def read(job: Job) -> None:
    """Read growing numbers of rows, the last one `epochs` times, while the next fits the time."""
    loaded: List[data_sources.Source] = []
    source: Any = None
    # rows, and the seconds that they took beside the start of workers
    spent: List[Tuple[int, float]] = []
    start_s = build_s = 0.0
    now_open = 0
    first_open: Optional[int] = None
    held: List[Tuple[int, int]] = []  # rows, and the most memory with them
    sizes = list(job.task["rows"])
    while rows := next_size(job, sizes, spent, held, start_s):
        left_s, began = job.until - time.perf_counter(), time.perf_counter()
        # Files that an object opened for the rows before, and holds, are not to be counted again
        # with the next size.
        holds = (
            first_open is not None
            and process_usage.open_files(os.getpid()) > now_open + HELD_FDS
            and build_s < REBUILD_SHARE * left_s
        )
        if not loaded or data_sources.takes_rows(job.found) or holds:
            loaded, source = [], None
            reading.fresh()
            building = time.perf_counter()
            loaded = job.sources(rows)
            build_s = time.perf_counter() - building
        source = loaded[0]
        if rows in job.task["further"] and has_fewer(job, source, rows):
            break  # all of the data was read already, or nearly
        now_open = process_usage.open_files(os.getpid())
        first_open = now_open if first_open is None else first_open
        left_open = max(0, now_open - first_open)
        with child_report.phase("first rows", rows=rows):
            want = job.stacked(source, job.want(rows))
        last = rows == max(
            (size for size in job.task["rows"] if size not in job.task["further"]), default=rows
        )
        for number in range(1, (job.task["epochs"] if last else 1) + 1):
            with child_report.phase("reading", rows=rows, epoch=number):
                batches = data_sources.loader(source, want)
                size = getattr(batches, "batch_size", None) or want.batch or 1
                found = reading.epoch(batches, want, job.until, os.getpid(), job.shm_before, size)
            if number == 1:
                high = found.high._replace(
                    fds=found.high.fds - left_open, parent_fds=found.high.parent_fds - left_open
                )
                found = _least(found, job, source, want)
                measures = reading.numbers(found, _workers_of(source, want))
                child_report.tell(
                    "read",
                    rows=rows,
                    measures=measures,
                    high=high._asdict(),
                    seen=found.rows,
                    whole=found.whole,
                    left_open=left_open,
                )
            if last:
                child_report.tell(
                    "growth",
                    rows=rows,
                    epoch=number,
                    workers=found.worker_growth,
                    parent=found.parent_growth,
                    whole=found.whole,
                )
            if not found.whole:
                return
            if not found.rows:
                child_report.tell("nothing", rows=rows, says=f"The {source.name} data gave no row.")
                return
            del batches
        start_s = found.first_s if want.workers else 0.0
        held.append((rows, found.high.pss))
        spent.append((rows, max(0.0, time.perf_counter() - began - start_s)))
    if (
        job.task["workers"] > 1
        and job.task["ranks"] == 1
        and job.task["epochs"] > 1
        and loaded[0].kind != "opaque"
        and time.perf_counter() < job.until
    ):
        consistency.draws(job, loaded[0])


def _least(
    found: reading.Epoch, job: Job, source: data_sources.Source, want: data_sources.Want
) -> reading.Epoch:
    """Repeat a short pass up to twice and keep the least times, against a busy machine's noise."""
    for _ in range(2):
        if (
            want.ranks > 1
            or want.method == "spawn"
            or not found.whole
            or not found.rows
            or found.first_s + found.rest_s > BRIEF_S
        ):
            break
        batches = data_sources.loader(source, want)
        again = reading.epoch(
            batches,
            want,
            job.until,
            os.getpid(),
            job.shm_before,
            getattr(batches, "batch_size", None) or want.batch or 1,
        )
        if again.rows == found.rows:
            found = found._replace(
                first_s=min(found.first_s, again.first_s), rest_s=min(found.rest_s, again.rest_s)
            )
    return found


def has_fewer(job: Job, source: data_sources.Source, rows: int) -> bool:
    """Does the factory give the same data for any size, and less than `rows`?"""
    length = None if data_sources.takes_rows(job.found) else data_sources.length_of(source)
    return length is not None and length < rows


def cheap(
    spent: List[Tuple[int, float]], held: List[Tuple[int, int]], rows: int, left_s: float
) -> bool:
    """Whether a size surely fits a sixth of the time left and a tenth of the free memory."""
    if len(spent) < 2:
        return False
    (before, before_s), (last, last_s) = spent[-2:]
    in_step = last_s * before <= 2 * before_s * last
    expected_s = 3 * foreseen(spent, rows) if in_step else last_s * (rows / last) ** 2
    slope = max(0, held[-1][1] - held[-2][1]) / max(1, held[-1][0] - held[-2][0])
    free = process_usage.limits().get("memory_free_bytes", (0.0, ""))[0]
    return expected_s < left_s / 2 and slope * (rows - last) < free / 10


def next_size(
    job: Job,
    sizes: List[int],
    spent: List[Tuple[int, float]],
    held: List[Tuple[int, int]],
    start_s: float,
) -> int:
    """The next of `sizes`, or one on the way to it; 0 if none is left or fits the time."""
    rows, left_s = sizes[0] if sizes else 0, job.until - time.perf_counter()
    further = rows in job.task["further"]
    if not rows or (further and not cheap(spent, held, rows, left_s)):
        return 0
    if job.task["steps"] and not further:
        rows = nearest(spent, rows, left_s)
    elif spent and start_s + foreseen(spent, rows) > left_s:
        rows = 0
    if rows == sizes[0]:
        sizes.pop(0)
    if not rows:
        child_report.tell(
            "skipped",
            rows=sizes[0],
            says=(
                f"{spent[-1][0]} rows took {start_s + spent[-1][1]:.1f} s, and"
                f" {max(0.0, left_s):.0f} s were left"
            ),
        )
    return rows


def nearest(spent: List[Tuple[int, float]], rows: int, left_s: float) -> int:
    """`rows` itself, or a size on the way to it; 0 if none fits the time. A size further than STEP
    is taken at once only if even a cube of the rows would fit.
    """
    if not spent:
        return rows
    last, last_s = spent[-1]
    if last_s < TELLING_S and rows <= FREE_STEP * last:
        return rows
    if rows <= STEP * last or last_s * (rows / last) ** CUBE > left_s / 2:
        steps = [rows] if rows <= STEP * last else []
        steps += [last * factor for factor in (STEP, 2) if last * factor < rows]
        return next((size for size in steps if foreseen(spent, size) <= left_s), 0)
    return rows


def foreseen(spent: List[Tuple[int, float]], rows: int) -> float:
    """How long `rows` will take by the last sizes: in proportion, or as the curve bends. After a
    single size, which is mostly start-up, three times as long.
    """
    if len(spent) < 2:
        return 3 * spent[-1][1]
    (before, before_s), (last, last_s) = spent[-2:]
    slope = max(0.0, last_s - before_s) / max(1, last - before)
    power = 1.0
    if len(spent) > 2 and last_s - before_s > TELLING_S and last > before > spent[-3][0]:
        first, first_s = spent[-3]
        earlier = max(before_s - first_s, 0.01 * (last_s - before_s)) / (before - first)
        power = 1 + math.log(slope / earlier) / math.log((last + before) / (before + first))
        power = min(max(power, 1.0), STEEPEST)
    grown = ((rows / last) ** power - 1) / (1 - (before / last) ** power) if last > before else 0.0
    return last_s + max(0.0, last_s - before_s) * grown


def _workers_of(source: data_sources.Source, want: data_sources.Want) -> int:
    return want.workers if source.kind != "opaque" else 0


def together(job: Job) -> None:
    """Open all of the user's loaders at once, as training does; read two batches of each."""
    rows = job.task["rows"][-1]
    alive, high = [], process_usage.most([])
    for source in job.sources(rows):
        with child_report.phase(f"opening the {source.name} loader", rows=rows):
            changes: Dict[str, Any] = (
                {"collate": data_sources.as_list}
                if job.collate is None and source.kind not in ("loader", "opaque")
                else {}
            )
            batches = data_sources.loader(source, job.want(rows, **changes))
            iterator = iter(batches)
            next(iterator, None)
        alive.append((batches, iterator))
        high = process_usage.most([high, process_usage.look(os.getpid(), job.shm_before)])
        child_report.tell("tick", loaders=len(alive))
    with child_report.phase("reading all loaders in turn", rows=rows):
        for _, iterator in alive:
            next(iterator, None)
    high = process_usage.most([high, process_usage.look(os.getpid(), job.shm_before)])
    child_report.tell("together", loaders=len(alive), rows=rows, high=high._asdict())


TASKS = {
    "read": read,
    "together": together,
    "checks": consistency.round_trip,
    "shards": consistency.shards,
}


def _join_group(task: Dict[str, Any]) -> None:
    """Join a group of one, for data sets that ask for their rank; failing is no fault."""
    import datetime as dt

    import torch.distributed

    if torch.distributed.is_available():
        try:
            wait = dt.timedelta(seconds=max(10.0, task["soft_s"]))
            torch.distributed.init_process_group(
                "gloo",
                init_method=f"file://{task['store']}",
                rank=task["rank"],
                world_size=task["ranks"],
                timeout=wait,
            )
        except Exception as error:
            # a host without a network interface: the data may need no group at all
            child_report.tell("groupless", says=f"{type(error).__name__}: {error}")


def main() -> None:
    task = json.loads(sys.argv[1])
    sys.argv[:] = [task["dataset"]]
    child_report.begin(task["reports"])
    faulthandler.enable(file=2)
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
    try:
        with child_report.phase("import of torch"):
            import torch
            import torch.utils.data
        torch.set_num_threads(1)
        with child_report.phase("process group"):
            _join_group(task)
        TASKS[task["task"]](Job(task))
    except NamedObjectError as error:
        if error.mistyped:
            child_report.tell("mistyped", says=error.sentence)
        else:
            child_report.failed(error.error or error)
    except data_sources.NonsenseError as error:
        child_report.tell("nonsense", says=str(error))
    except BaseException as error:
        # sys.exit and the like are the user's too; whatever it is, the probe says it
        child_report.failed(error, leaving=isinstance(error, (SystemExit, KeyboardInterrupt)))
    else:
        child_report.tell("done", took_s=time.perf_counter())
    os._exit(0)  # threads and exit handlers of the user's have no part in this


if __name__ == "__main__":
    main()
