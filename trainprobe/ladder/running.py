"""Runs single cells and records how each came out; knows what has been answered, also in the climb
that this one resumes.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainprobe.case import Case
from trainprobe.ladder import cell_measures, launch, probe_cell, script_cell
from trainprobe.ladder.cells import Cell
from trainprobe.ladder.deadlines import CellTiming, Deadlines
from trainprobe.ladder.knobs import Change, Turn
from trainprobe.ladder.outcome import Result, skipped
from trainprobe.ladder.pace import Pace
from trainprobe.ladder.plan import Plan, Rung
from trainprobe.ladder.probes import USER_SCRIPT
from trainprobe.ladder.thresholds import held_against
from trainprobe.ladder.watch import Watch
from trainprobe.model.progress import Progress
from trainprobe.model.subjects import JOB
from trainprobe.system.interruption import Interruption
from trainprobe.system.keeper import Keeper

FAILED = ("failed", "timed_out", "crashed")
ANSWERS = ("passed", *FAILED)
SPAWNED = "start=spawn"
TAIL_BYTES = 2**18
# After these, a larger world would only make it worse, or show the same.
NO_LARGER_AFTER = "was killed because memory ran out"


@dataclass(frozen=True)
class Done:
    """A finished cell, as far as later cells need it. `data` is that of its `rung` evidence."""

    cell: Cell
    outcome: str
    data: Mapping[str, Any]

    @property
    def failed(self) -> bool:
        return self.outcome in FAILED

    @property
    def timing(self) -> CellTiming:
        """How long it took, for the deadlines of larger cells."""
        rhythm = self.data.get("rhythm")
        known: Mapping[str, Any] = rhythm if isinstance(rhythm, Mapping) else {}
        return CellTiming(
            self.cell,
            _seconds(self.data.get("elapsed_s")) or 0.0,
            _seconds(known.get("first_sign_s")),
            _seconds(known.get("quiet_s")),
        )


class Runner:
    """One cell after the other. `done` holds those that have an answer, by name."""

    def __init__(
        self, plan: Plan, case: Case, progress: Progress, pace: Pace, interruption: Interruption
    ) -> None:
        self.plan, self.case, self.progress, self.pace = plan, case, progress, pace
        self.interruption = interruption
        self.began = time.monotonic()
        self.done: dict[str, Done] = {}
        self.folder = ""
        self.resumed = 0  # how often the case has been resumed
        self._places = 0

    def open(self) -> None:
        """Prepare for the first cell. On this machine there is nothing to do."""

    def close(self) -> None:
        """Undo what `open` did."""

    def left_s(self) -> float:
        """How much of the time for the whole climb is left."""
        if self.plan.timeout_s is None:
            return float("inf")
        return self.plan.timeout_s - (time.monotonic() - self.began)

    def over(self, rung: Rung, cell: Cell) -> bool:
        """Whether nothing more may be started; if so, record that for `cell`."""
        if self.interruption.asked:
            self.skip(rung, cell, "interrupted", "the climb was interrupted before it")
        elif self.left_s() <= 0:
            limit_s = self.plan.timeout_s or 0
            because = f"the time limit of the whole climb, {limit_s:g} s, was reached"
            self.skip(rung, cell, "time", because)
        else:
            return False
        return True

    def skip(self, rung: Rung, cell: Cell, unmet: str, because: str) -> None:
        """Record that a cell is not run."""
        self._write(rung, cell, skipped(unmet, because), time.time(), 0.0, 0.0)

    def _pace_and_deadline(self, rung: Rung, by: Deadlines | None) -> tuple[Pace, float]:
        """The pace of a cell, and the seconds after which it ends at the latest."""
        pace = by.pace(self.pace) if by is not None else self.pace
        usual_s = self.plan.deadlines_s.get(rung.spec.name, rung.spec.timeout_s)
        if by is not None or rung.spec.name == USER_SCRIPT:
            usual_s = pace.run_s + pace.stall_s
        return pace, min(self.left_s(), usual_s)

    def _when_interrupted(self, result: Result, rung: Rung, name: str) -> Result:
        """The result of a cell that Ctrl-C or SIGTERM ended, which is recorded; any other stays."""
        stopped = result.more.get("stopped_because") == "interrupted"
        if not stopped and not (self.interruption.asked and result.outcome == "timed_out"):
            return result
        self._record_interruption(rung, name)
        more = {**result.more, "stopped_because": "interrupted", "unmet": "interrupted"}
        return Result("not_measured", "it was interrupted", (), more)

    def _record_interruption(self, rung: Rung, name: str) -> None:
        data = {"phase": rung.spec.name, "cell": name}
        self.case.add("interrupted", subject=JOB, cell=name, source="signal", data=data)

    def run(
        self,
        rung: Rung,
        cell: Cell,
        *,
        largest: bool,
        by: Deadlines | None = None,
        turn: Turn | None = None,
    ) -> Result:
        """Run one cell and record everything. `by` makes a cell of the user's command run to the
        end; `turn` is the knob to change.
        """
        plan, of_script, name = self.plan, rung.spec.name == USER_SCRIPT, rung.name(cell)
        pace, deadline_s = self._pace_and_deadline(rung, by)
        self.progress.cell_began(rung.spec.name, name, cell.nproc, rung.spec.question, deadline_s)
        began, clock = time.time(), time.monotonic()
        folder = os.path.join(self.folder, str(self._places))
        self._places += 1
        change = turn.change if turn is not None else None
        try:
            os.makedirs(folder)
            made = self._launch(rung, cell, folder, deadline_s, change)
        except OSError as error:
            result = Result("not_measured", f"its working folder cannot be made: {error.strerror}")
            self._write(rung, cell, result, began, 0.0, deadline_s)
            return result
        with Keeper(folder) as keeper:
            watch = Watch(made, keeper, self.case, pace, plan.cwd, self.interruption)
            watch.cgroups.look(self.case, name, "before")
            watch.start()
            if of_script:
                result = script_cell.run(watch, largest=largest, hard_s=self.left_s())
            else:
                result = probe_cell.run(watch, deadline_s)
            result = held_against(result, rung.spec.name, plan.thresholds)
            if keeper.trouble:
                self.progress.note(keeper.trouble)
                if result.outcome == "passed":
                    result = replace(result, outcome="not_measured", says=keeper.trouble)
        result = self._when_interrupted(result, rung, name)
        if of_script:
            more: dict[str, Any] = {**result.more}
            if plan.ablate and turn is None:
                more["could"] = _could(watch)
            more |= {"switched_on": dict(made.switched_on), "left_alone": list(made.left_alone)}
            if by is not None:
                more["deadlines"] = by.row()
            result = replace(result, more=more)
            data = cell_measures.of_cell(watch, cell, float(more.get("elapsed_s") or 0.0))
            self.case.add("cell.measures", subject=JOB, cell=name, source="ladder", data=data)
            result = _turned(result, turn, watch) if turn is not None else result
            result = self._too_few_rows(result, rung, cell)
        self._write(rung, cell, result, began, time.monotonic() - clock, deadline_s)
        shutil.rmtree(folder, ignore_errors=True)
        return result

    def _launch(
        self, rung: Rung, cell: Cell, folder: str, deadline_s: float, change: Change | None
    ) -> launch.Launch:
        if rung.spec.name != USER_SCRIPT:
            return launch.probe(self.plan, rung, cell, folder, deadline_s)
        make = launch.command if self.plan.form == "command" else launch.script
        return make(self.plan, rung, cell, folder, change or Change())

    @staticmethod
    def _too_few_rows(result: Result, rung: Rung, cell: Cell) -> Result:
        """A small cell without a batch or a step shows nothing: two rows may be too few for the
        batches of four ranks.
        """
        full = cell.rows is None or cell.rows == max(rung.rows, default=cell.rows)
        if result.outcome != "failed" or full:
            return result
        says = f"{result.says}; {cell.rows} rows may be too few for it"
        return replace(result, outcome="not_measured", says=says, ranks=())

    def _write(
        self,
        rung: Rung,
        cell: Cell,
        result: Result,
        began: float,
        took_s: float,
        deadline_s: float,
        *,
        announced: bool = True,
    ) -> None:
        """Record how a cell came out; `announced` also shows it to the user."""
        spec, name = rung.spec, rung.name(cell)
        data: dict[str, Any] = {
            "rung": spec.rung,
            "probe": spec.name,
            "question": spec.question,
            "cell": name,
            "nproc": cell.nproc,
            "rows": cell.rows,
            "knob": cell.knob,
            "of_cell": cell.of_cell,
            "outcome": result.outcome,
            "took_s": round(took_s, 3),
            "deadline_s": round(deadline_s, 1) if deadline_s != float("inf") else 0.0,
            "says": result.says,
            "ranks": list(result.ranks),
            "skipped_because": "",
            "unmet": "",
            "measures": [],
            **({"resumed": self.resumed} if self.resumed else {}),
            "tells_all": result.tells_all or NO_LARGER_AFTER in result.says,
            **result.more,
        }
        if result.outcome in ANSWERS:
            self.done[name] = Done(cell, result.outcome, data)
        self.case.add(
            "rung", subject=JOB, cell=name, source="ladder", began=began, took_s=took_s, data=data
        )
        if announced:
            self.progress.cell_ended(spec.name, name, result.outcome, took_s, result.reason)


def _could(watch: Watch) -> dict[str, Any]:
    """What in the program a knob could change, as witnesses and processes show it; empty where no
    witness reported anything.
    """
    witnesses = [witness for witness in watch.signs.by_pid.values() if witness.event_names]
    if not witnesses:
        return {}
    loaders = [loader for witness in witnesses for loader in witness.loaders]
    return {
        "loaders": len(loaders),
        "workers": max((workers for workers, _ in loaders), default=0),
        "batch": max((batch for _, batch in loaders), default=0),
        "children": sum(mate.member.role in ("loader-worker", "child") for mate in watch.team()),
        "trainer": any("trainer" in witness.event_names for witness in witnesses),
    }


def _turned(result: Result, turn: Turn, watch: Watch) -> Result:
    """Add what was changed and whether it took effect. A knob that changed nothing gives no
    answer.
    """
    change = turn.change or Change()
    by_witness = change.how == "witness"
    applied = sum(witness.knob_applied for witness in watch.signs.by_pid.values())
    more: dict[str, Any] = {
        **result.more,
        "knob_how": change.how,
        "applied": applied > 0 if by_witness else True if change.how else None,
        "applied_count": applied,
        "applied_says": change.says,
    }
    without_effect = {**more, "without_effect": result.outcome}
    if result.outcome in FAILED and turn.label == SPAWNED and _unspawnable(watch):
        says = "the script has no `if __name__ == '__main__':`, so its children cannot be spawned"
        return skipped("knob:not-here", says, without_effect)
    if by_witness and not applied and result.outcome in ANSWERS:
        says = f"the knob changed nothing: the program did nothing that {turn.label} could change"
        return skipped("knob:no-effect", says, without_effect)
    return replace(result, more=more)


def _unspawnable(watch: Watch) -> bool:
    """Whether a spawned child tried to start children itself, which multiprocessing refuses
    (multiprocessing/spawn.py, _check_not_importing_main).
    """
    paths = [path for spec in watch.launch.specs for path in (spec.stdout, spec.stderr)]
    paths += [path for _, _, path in watch.find_logs()]
    return any(b"bootstrapping phase" in _tail(path) for path in dict.fromkeys(paths))


def _tail(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - TAIL_BYTES))
            return file.read(TAIL_BYTES)
    except OSError:
        return b""


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
