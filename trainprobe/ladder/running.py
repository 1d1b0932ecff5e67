"""Runs single cells and writes down how each came out; remembers what has been answered, also in
the climb that this one goes on with.
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
from trainprobe.ladder.outcome import Result
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
    """A cell that is over, as far as later cells need it: its `data` are those of its `rung`
    evidence.
    """

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
        self.plan, self.case, self.progress, self.pace, self.interruption = (
            plan,
            case,
            progress,
            pace,
            interruption,
        )
        self.began = time.monotonic()
        self.done: dict[str, Done] = {}
        self.folder = ""
        self.resumed = 0  # how often the case has been gone on with
        self._places = 0

    def open(self) -> None:
        """Make ready for the first cell. On this machine there is nothing to do."""

    def close(self) -> None:
        """Leave what `open` made."""

    def left_s(self) -> float:
        """How much is left of the time for the whole climb."""
        return (
            float("inf")
            if self.plan.timeout_s is None
            else self.plan.timeout_s - (time.monotonic() - self.began)
        )

    def over(self, rung: Rung, cell: Cell) -> bool:
        """Say whether nothing more may be started, and write that down for `cell`."""
        if self.interruption.asked:
            self.skip(rung, cell, "interrupted", "the climb was interrupted before it")
        elif self.left_s() <= 0:
            self.skip(
                rung,
                cell,
                "time",
                f"the time limit of the whole climb, {self.plan.timeout_s or 0:g} s, was reached",
            )
        else:
            return False
        return True

    def skip(self, rung: Rung, cell: Cell, unmet: str, because: str) -> None:
        """Write down that a cell is not run."""
        self._write(
            rung,
            cell,
            Result("skipped", "", (), {"unmet": unmet, "skipped_because": because}),
            time.time(),
            0.0,
            0.0,
        )

    def run(
        self,
        rung: Rung,
        cell: Cell,
        *,
        largest: bool,
        by: Deadlines | None = None,
        turn: Turn | None = None,
    ) -> Result:
        """Run one cell and write everything down. `by` makes a cell of the user's command run to
        its own end; `turn` is the knob to change.
        """
        plan, of_script = self.plan, rung.spec.name == USER_SCRIPT
        pace = by.pace(self.pace) if by is not None else self.pace
        name = rung.name(cell)
        if by is not None:
            deadline_s = min(self.left_s(), pace.run_s + pace.stall_s)
        else:
            deadline_s = min(
                self.left_s(),
                (
                    pace.run_s + pace.stall_s
                    if of_script
                    else plan.deadlines_s.get(rung.spec.name, rung.spec.timeout_s)
                ),
            )
        self.progress.cell_began(rung.spec.name, name, cell.nproc, rung.spec.question, deadline_s)
        began, clock = time.time(), time.monotonic()
        folder = os.path.join(self.folder, str(self._places))
        self._places += 1
        try:
            os.makedirs(folder)
            made = self._launch(
                rung, cell, folder, deadline_s, turn.change if turn is not None else None
            )
        except OSError as error:
            result = Result("not_measured", f"its working folder cannot be made: {error.strerror}")
            self._write(rung, cell, result, began, 0.0, deadline_s)
            return result
        with Keeper(folder) as keeper:
            watch = Watch(made, keeper, self.case, pace, plan.cwd, self.interruption)
            watch.cgroups.look(self.case, name, "before")
            watch.start()
            result = (
                script_cell.run(watch, largest=largest, hard_s=self.left_s())
                if of_script
                else probe_cell.run(watch, deadline_s)
            )
            result = held_against(result, rung.spec.name, plan.thresholds)
            if keeper.trouble:
                self.progress.note(keeper.trouble)
                result = (
                    replace(result, outcome="not_measured", says=keeper.trouble)
                    if result.outcome == "passed"
                    else result
                )
        if (self.interruption.asked and result.outcome == "timed_out") or result.more.get(
            "stopped_because"
        ) == "interrupted":
            result = Result(
                "not_measured",
                "it was interrupted",
                (),
                {**result.more, "stopped_because": "interrupted", "unmet": "interrupted"},
            )
            self.case.add(
                "interrupted",
                subject=JOB,
                cell=name,
                source="signal",
                data={"phase": rung.spec.name, "cell": name},
            )
        if of_script:
            if plan.ablate and turn is None:
                result = replace(result, more={**result.more, "could": _could(watch)})
            more: dict[str, Any] = {
                **result.more,
                "switched_on": dict(made.switched_on),
                "left_alone": list(made.left_alone),
            }
            if by is not None:
                more["deadlines"] = by.row()
            result = replace(result, more=more)
            self._measured(watch, cell, name, float(result.more.get("elapsed_s") or 0.0))
            result = self._too_few_rows(
                _turned(result, turn, watch) if turn is not None else result, rung, cell
            )
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

    def _measured(self, watch: Watch, cell: Cell, name: str, took_s: float) -> None:
        self.case.add(
            "cell.measures",
            subject=JOB,
            cell=name,
            source="ladder",
            data=cell_measures.of_cell(watch, cell, took_s),
        )

    @staticmethod
    def _too_few_rows(result: Result, rung: Rung, cell: Cell) -> Result:
        """Without a batch or a step a small cell has shown nothing: two rows may be too few for
        the batches of four ranks.
        """
        if (
            result.outcome != "failed"
            or cell.rows is None
            or cell.rows == max(rung.rows, default=cell.rows)
        ):
            return result
        return replace(
            result,
            outcome="not_measured",
            says=f"{result.says}; {cell.rows} rows may be too few for it",
            ranks=(),
        )

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
        """Write down how a cell came out; `announced` shows it to the user, too."""
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
            self.progress.cell_ended(
                spec.name,
                name,
                result.outcome,
                took_s,
                result.says or str(result.more.get("skipped_because", "")),
            )


def _could(watch: Watch) -> dict[str, Any]:
    """What of the program a knob could take hold of, by the witnesses and by its processes;
    empty where no witness told anything.
    """
    witnesses = [each for each in watch.signs.by_pid.values() if each.said]
    if not witnesses:
        return {}
    return {
        "loaders": sum(len(each.loaders) for each in witnesses),
        "workers": max((workers for each in witnesses for workers, _ in each.loaders), default=0),
        "batch": max((batch for each in witnesses for _, batch in each.loaders), default=0),
        "children": sum(mate.member.role in ("loader-worker", "child") for mate in watch.team()),
        "trainer": any("trainer" in each.said for each in witnesses),
    }


def _turned(result: Result, turn: Turn, watch: Watch) -> Result:
    """Add what was changed and whether it took hold; an answer with a knob that changed nothing
    is none.
    """
    change = turn.change or Change()
    applied = sum(each.knob_applied for each in watch.signs.by_pid.values())
    more: dict[str, Any] = {
        **result.more,
        "knob_how": change.how,
        "applied": applied > 0 if change.how == "witness" else True if change.how else None,
        "applied_count": applied,
        "applied_says": change.says,
    }
    if result.outcome in FAILED and turn.label == SPAWNED and _unspawnable(watch):
        because = (
            "the script has no `if __name__ == '__main__':`, so its children cannot be spawned"
        )
        return Result(
            "skipped",
            "",
            (),
            {
                **more,
                "unmet": "knob:not-here",
                "skipped_because": because,
                "without_effect": result.outcome,
            },
        )
    if change.how != "witness" or applied or result.outcome not in ANSWERS:
        return replace(result, more=more)
    because = f"the knob changed nothing: the program did nothing that {turn.label} could change"
    return Result(
        "skipped",
        "",
        (),
        {
            **more,
            "unmet": "knob:no-effect",
            "skipped_because": because,
            "without_effect": result.outcome,
        },
    )


def _unspawnable(watch: Watch) -> bool:
    """Whether a spawned child came to start children itself, which multiprocessing refuses
    (multiprocessing/spawn.py, _check_not_importing_main).
    """
    paths = [path for spec in watch.launch.specs for path in (spec.stdout, spec.stderr)] + [
        path for _, _, path in watch.find_logs()
    ]
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
