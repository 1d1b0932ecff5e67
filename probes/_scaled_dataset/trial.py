"""Decides which cells to try within the time; makes measures, failures and an answer of reports."""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional, Tuple

import _emit
from _scaled_dataset import cells, comparisons, failures, process_usage, worker_limit

RESERVE = 0.06  # of the time, and no less than RESERVE_S: for the answer and the ends of children
RESERVE_S = 3.0
LEAST_S = 6.0  # a cell with less time than this would only time out
IDLE_S = 15.0
ROWS = (2, 100, 1000)
# tried where nobody run how many and the smaller sizes were cheap: a law reaches thirty times its
# largest size
FURTHER = (10_000, 100_000, 1_000_000)
WORKERS = (0, 2)
WITHOUT_LADDER_S = 170.0
SHARD_ROWS = 2000
MODEST_ROWS = 1000  # enough to see whether workers that are started in another way read at all


class DatasetRequest(NamedTuple):
    """The request. `rows` are sizes, lowest first; `batch` None is the data's own; `ranks` are
    planned on this node; `further` sizes are read if the smaller ones were cheap.
    """

    dataset: str
    collate: str
    rows: Tuple[int, ...]
    workers: Tuple[int, ...]
    batch: Optional[int]
    ranks: int
    deadline_s: float
    further: Tuple[int, ...] = ()


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


class DatasetTrial:
    def __init__(self, request: DatasetRequest) -> None:
        self.request, self.began = request, time.monotonic()
        self.failures: List[failures.Failure] = []
        self.stack = self.unknown = ""
        self.rows = self.growing = list(request.rows)
        self.measured: List[int] = []
        self.sources: List[Dict[str, Any]] = []
        self.costs: Dict[Tuple[int, str, int], Dict[str, float]] = {}
        self.steady, self.pickles, self.reported = (False, True, set())  # type: Tuple[bool, bool, set[str]]
        self.steps_left = 3 + (4 if max(request.workers, default=0) else 0) + (request.ranks > 1)

    @property
    def left_s(self) -> float:
        return (
            self.request.deadline_s
            - max(RESERVE_S, RESERVE * self.request.deadline_s)
            - (time.monotonic() - self.began)
        )

    def run(self) -> NoReturn:
        """Run the smallest cell first; then workers, ranks and start methods, sharing the time."""
        for name, (value, unit) in process_usage.limits().items():
            _emit.measure(f"limit.{name}", value, unit)
        cells.become_subreaper()
        good = self.read(0, "none", 1, [*self.rows, *self.request.further], steps=True)
        if good:
            # Of the sizes on the way two are enough for workers, which start anew for each of them.
            modest = max((rows for rows in self.measured if rows <= MODEST_ROWS), default=good)
            self.growing = sorted(
                {
                    modest,
                    good,
                    *(rows for rows in [*self.rows, *self.request.further] if rows <= good),
                }
            )
            self.rows = sorted({modest, *(rows for rows in self.rows if rows <= good)})
            self._check()
            self._with_workers()
        self._answer()

    @property
    def method(self) -> str:
        """How workers start: as their loader says, else Python's default (forkserver from 3.14)."""
        return str(self.sources[0]["method"] or multiprocessing.get_start_method())

    def _with_workers(self) -> None:
        own = self.sources[0]
        counts = [
            number for number in sorted({*self.request.workers, own["workers"] or 0}) if number
        ]
        if own["kind"] == "opaque":
            _emit.check(
                "data.opaque",
                "unknown",
                "The data makes its batches with its own workers; other numbers of workers and"
                " start methods could not be tried.",
            )
            counts = []
        method = self.method
        self.steps_left = len(counts) + 4
        if counts:
            self.read(counts[0], method, 1, self.growing, epochs=2)
        most, how = max(counts, default=0), method if counts else "none"
        self._together(most, how)
        if self.request.ranks > 1:
            self.read(most, how, self.request.ranks, self.rows[-1:])
        self._shards(most, how)
        for other in [
            name
            for name in ("fork", "spawn")
            if name != method and counts and (name == "fork" or self.pickles)
        ]:
            # Each spawned worker imports everything again, so one of them, on few rows, is enough
            # to see whether that works at all.
            self.read(
                1,
                other,
                1,
                [max([rows for rows in self.rows if rows <= MODEST_ROWS] or self.rows[:1])],
            )
        for workers in counts[1:]:
            self.read(workers, method, 1, self.rows[-1:])
        worker_limit.tell(
            self.costs,
            process_usage.limits(),
            self.request.ranks,
            len(self.sources),
            [item.more for item in self.failures],
        )

    def cell(
        self,
        name: str,
        workers: int,
        method: str,
        ranks: int,
        rows: List[int],
        epochs: int = 1,
        *,
        steps: bool = False,
    ) -> Optional[Tuple[Dict[str, Any], cells.CellRun]]:
        """Run one cell with its share of the time; None where none is left."""
        share_s = self.left_s * max(2.0 / max(2, self.steps_left), 0.5 if not self.costs else 0.0)
        self.steps_left -= 1
        if share_s < min(LEAST_S, self.request.deadline_s / 4):
            _emit.check(
                "data.time",
                "unknown",
                f"No time was left for {failures.of_workers(workers, method)} on {ranks} ranks"
                f" ({name}).",
            )
            return None
        task: Dict[str, Any] = {
            "task": name,
            "dataset": self.request.dataset,
            "collate": self.request.collate,
            "batch": self.request.batch,
            "rows": rows,
            "workers": workers,
            "further": list(self.request.further),
            "steps": steps,
        }
        task.update(
            method=method,
            ranks=ranks,
            soft_s=max(1.0, 0.75 * share_s),
            stack=self.stack,
            epochs=epochs,
            shard_rows=SHARD_ROWS,
        )
        with _emit.phase(
            f"{name} rows={','.join(map(str, rows))} workers={workers} method={method}"
            f" ranks={ranks}"
        ):
            patience_s = max(3.0, (0.7 if self.costs else 1.0) * share_s)
            # What was built and read once need not wait for the network again.
            return task, cells.run(
                task,
                ranks,
                share_s,
                patience_s,
                min(patience_s, IDLE_S) if self.costs else patience_s,
            )

    def fail(self, failure: failures.Failure, *, too_soon: bool = False) -> None:
        """Report a failure once: what breaks in one cell breaks in the next ones, too."""
        if failure.kind == "mistyped":
            _emit.result("cannot", failure.sentence)
        if failure.kind == "stood" and too_soon:
            self.unknown = f"{failure.sentence}. That may be a slow start."
            _emit.check("data.time", "unknown", self.unknown)
            return
        key = f"{failure.kind} {failure.more.get('type', '')} {failure.more.get('method', '')}"
        if key not in self.reported:
            self.reported.add(key)
            _emit.fail(failure.sentence, kind=failure.kind, given="dataset", **failure.more)
        self.failures.append(failure)

    def read(
        self,
        workers: int,
        method: str,
        ranks: int,
        rows: List[int],
        epochs: int = 1,
        *,
        steps: bool = False,
    ) -> int:
        """Read growing sizes, with `steps` more of them; return the largest that worked, or 0."""
        ran = self.cell("read", workers, method, ranks, rows, epochs, steps=steps)
        if ran is None:
            return 0
        task, cell = ran
        first = cell.runs[0]
        self.stack = (
            "list" if first.of("unstackable") else "torch" if first.of("stackable") else self.stack
        )
        for line in first.of("unstackable"):
            _emit.check(
                "data.stack",
                "unknown",
                f"torch cannot stack these samples ({line['says']}), so they were left as lists;"
                " give --collate.",
            )
        if first.of("forked") and not self.costs:
            _emit.check(
                "data.forks",
                "warn",
                f"{self.request.dataset} forks, and its child returns: whatever calls it continues"
                " twice.",
            )
        for line in first.of("skipped"):
            _emit.check(
                "data.time",
                "unknown",
                f"{line['rows']} rows were not tried with {failures.of_workers(workers, method)}:"
                f" {line['says']}.",
            )
        if first.of("built") and not self.sources:
            self._tell_built(first.of("built")[0])
        sizes = sorted({*rows, *(line["rows"] for line in first.of("read"))})
        good = [self._measure(task, cell, size) for size in sizes]
        self.measured = self.measured or [size for size in good if size]
        comparisons.tell_seeds(first, {"workers": workers, "ranks": ranks, "method": method})
        failure = failures.of_cell(cell, task, self.request.dataset)
        if failure is not None:
            self._tell_at_least(task, cell)
            self.fail(failure, too_soon=failures.too_soon(cell))
        return max(good)

    def _tell_at_least(self, task: Dict[str, Any], cell: cells.CellRun) -> None:
        """What a size took that did not end in its time is a measurement too: at least so long."""
        for run in cell.runs:
            line = (run.of("phase") or [{}])[-1]
            name = {"factory": "build_s", "reading": "took_s"}.get(str(line.get("phase")))
            if run.how == "stood" and name is not None and isinstance(line.get("rows"), int):
                took_s = run.lines[-1]["at"] + cell.waited_s - line["at"]
                labels = {"rows": line["rows"], "ranks": task["ranks"]}
                if name == "took_s":
                    labels.update(workers=task["workers"], method=task["method"])
                _emit.measure(name, round(took_s, 5), "s", at_least=True, **labels)

    def _tell_built(self, line: Dict[str, Any]) -> None:
        self.sources = line["sources"]
        if line["full"] is not None and not line["takes_rows"]:
            _emit.measure("dataset.full_rows", line["full"], "rows")
        names = ", ".join(
            f"{item['name']} ({item['type']}, {item['kind']})" for item in self.sources
        )
        _emit.check("data.given", "ok", f"{self.request.dataset} gives {names}.", len(self.sources))

    def _measure(self, task: Dict[str, Any], cell: cells.CellRun, rows: int) -> int:
        """Tell what all ranks measured at one size; return it where all of them read it."""
        labels = {
            "rows": rows,
            "workers": task["workers"],
            "method": task["method"],
            "ranks": task["ranks"],
        }
        built = [
            line
            for run in cell.runs
            for line in run.of("built")
            if line["phase"] == "len()" or line.get("build_s") is not None
        ]
        reads = [
            (run.rank, line) for run in cell.runs for line in run.of("read") if line["rows"] == rows
        ]
        if (
            built
            and len(reads) == task["ranks"]
            and (built[0]["takes_rows"] or rows == task["rows"][0])
        ):
            of = [line for line in built if line["rows"] == rows or not line["takes_rows"]]
            value = round(max(line["build_s"] for line in of), 5)
            _emit.measure("build_s", value, "s", rows=of[0]["rows"], ranks=task["ranks"])
        if len(reads) < task["ranks"]:
            return 0
        found: Dict[str, Tuple[float, str]] = {}
        for rank, line in reads:
            for name, (value, unit) in line["measures"].items():
                if name == "batches":
                    _emit.measure(name, value, unit, rank=rank, **labels)
                else:
                    old = found.get(name, (0.0, unit))[0]
                    found[name] = (old + value if name == "rows_per_s" else max(old, value), unit)
        for name, (value, unit) in found.items():
            if name != "took_s" or all(line["whole"] for _, line in reads):
                _emit.measure(name, round(value, 5), unit, **labels)
        self._tell_high(cell, reads, labels)
        self._tell_growth(cell, labels)
        return rows

    def _tell_high(
        self, cell: cells.CellRun, reads: List[Tuple[int, Dict[str, Any]]], labels: Dict[str, Any]
    ) -> None:
        each = [process_usage.Usage(**line["high"]) for _, line in reads]
        top = process_usage.added(each)
        begun = [
            line["at"]
            for run in cell.runs
            for line in run.of("phase")
            if line.get("rows") == labels["rows"]
        ]
        until = max(line["at"] for _, line in reads)
        during = [look for at, look in cell.samples if min(begun, default=until) <= at <= until]
        # by the sizes before: what leaks with each row read is this size's own only once
        left_open = max(line["left_open"] for _, line in reads)
        top = process_usage.most(
            [
                top,
                *(
                    look._replace(fds=look.fds - left_open, parent_fds=look.parent_fds - left_open)
                    for look in during
                ),
            ]
        )
        named = {
            "pss": top.pss,
            "rss": top.rss,
            "parent_pss": top.parent,
            "fds": top.fds,
            "pids": top.pids,
            "shm": top.shm,
        }
        if labels["workers"]:
            named["worker_pss"] = top.worker
        for name, value in named.items():
            _emit.measure(name, value, "" if name in ("fds", "pids") else "bytes", **labels)
        self.costs[labels["workers"], labels["method"], labels["ranks"]] = {
            **named,
            "parent_fds": top.parent_fds,
            "worker_private": top.worker_private,
            "rows": labels["rows"],
        }

    def _tell_growth(self, cell: cells.CellRun, labels: Dict[str, Any]) -> None:
        lines = [
            line
            for run in cell.runs
            for line in run.of("growth")
            if line["rows"] == labels["rows"] and line["whole"]
        ]
        for epoch in sorted({line["epoch"] for line in lines}):
            of = [line for line in lines if line["epoch"] == epoch]
            if labels["workers"]:
                value = max(line["workers"] for line in of)
                _emit.measure("loader.worker_growth", value, "bytes", epoch=epoch, **labels)
            value = max(line["parent"] for line in of)
            _emit.measure("loader.parent_growth", value, "bytes", epoch=epoch, **labels)

    def _check(self) -> None:
        ran = self.cell("checks", 0, "none", 1, self.rows[-1:])
        if ran is not None:
            self.steady = not ran[1].runs[0].of("unsteady")
            for failure in comparisons.round_trip(ran[1].runs[0], *ran, self.request.dataset):
                if failure.kind == "unpicklable":
                    self.pickles = False
                if failure.kind == "unpicklable" and all(
                    (item["method"] or self.method) == "fork" for item in self.sources
                ):
                    sentence = (
                        f"{failure.sentence}. Forked workers need no pickle, and no others were"
                        " requested."
                    )
                    _emit.check("data.pickle", "warn", sentence, failure.more.get("type", ""))
                else:
                    self.fail(failure, too_soon=failures.too_soon(ran[1]))

    def _shards(self, workers: int, method: str) -> None:
        """Whether several readers may get the same rows: a stream's or a loader's do."""
        if (
            self.sources[0]["kind"] in ("map", "opaque")
            or not self.steady
            or self.request.ranks * max(1, workers) < 2
        ):
            return
        alone = self.cell("shards", 0, "none", 1, self.rows[-1:])
        ran = (
            self.cell("shards", workers, method, self.request.ranks, self.rows[-1:])
            if alone is not None
            else None
        )
        if alone is not None and ran is not None:
            for failure in comparisons.shards(ran[1], ran[0], alone[1].runs[0]):
                self.fail(failure)

    def _together(self, workers: int, method: str) -> None:
        if len(self.sources) < 2:
            return
        ran = self.cell("together", workers, method, self.request.ranks, self.rows[-1:])
        if ran is None:
            return
        task, cell = ran
        lines = [line for run in cell.runs for line in run.of("together")]
        failure = failures.of_cell(cell, task, self.request.dataset)
        if failure is not None:
            self.fail(failure, too_soon=failures.too_soon(cell))
        if len(lines) == task["ranks"]:
            each = [process_usage.Usage(**line["high"]) for line in lines]
            top = process_usage.most([*each, *(look for _, look in cell.samples)])
            labels = {
                "rows": task["rows"][-1],
                "workers": workers,
                "method": method,
                "ranks": task["ranks"],
                "how": "together",
                "loaders": len(self.sources),
            }
            for name, value in (
                ("pss", max(top.pss, sum(item.pss for item in each))),
                ("fds", top.fds),
                ("pids", max(top.pids, sum(item.pids for item in each))),
                ("shm", top.shm),
            ):
                _emit.measure(name, value, "" if name in ("fds", "pids") else "bytes", **labels)

    def _answer(self) -> NoReturn:
        if self.failures:
            ways = sorted(
                {failures.of_workers(workers, method) for workers, method, _ in self.costs}
            )
            _emit.result(
                "no",
                self.failures[0].sentence.rstrip(".")
                + "."
                + (f" It was read with {', '.join(ways)}." if ways else ""),
            )
        if not self.costs:
            _emit.result(
                "cannot", self.unknown or "There was not enough time to read a single row."
            )
        if (
            max(self.request.workers)
            and self.sources[0]["kind"] != "opaque"
            and not any(workers for workers, _, _ in self.costs)
        ):
            why = f" {self.unknown}" if self.unknown else ""
            _emit.result(
                "cannot",
                f"One process reads up to {max(self.rows)} rows; with workers nothing was measured"
                f" within the time.{why}",
            )
        tried = sorted({method for _, method, _ in self.costs if method != "none"})
        by = f", also by workers started with {', '.join(tried)}" if tried else ""
        _emit.result(
            "yes", f"Up to {max(self.rows)} rows of {self.request.dataset} load right{by}."
        )
