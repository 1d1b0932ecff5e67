"""Climbs the ladder: one cell after the other, each in processes of its own, everything seen written to the case."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import replace
from typing import Any

from trainprobe import __version__
from trainprobe.case import Case
from trainprobe.collect.members import host_name, host_subject
from trainprobe.collect.seen import record
from trainprobe.config import Settings
from trainprobe.errors import CannotLook
from trainprobe.ladder import launch, probe_cell, script_cell
from trainprobe.ladder.outcome import Result
from trainprobe.ladder.pace import Pace
from trainprobe.ladder.plan import Plan, Rung
from trainprobe.ladder.probes import USER_SCRIPT
from trainprobe.ladder.thresholds import held_against
from trainprobe.ladder.watch import Watch
from trainprobe.model.codec import to_json
from trainprobe.model.progress import Progress
from trainprobe.model.subjects import JOB
from trainprobe.system.interruption import Interrupted, Interruption
from trainprobe.system.keeper import Keeper

FAILED = ("failed", "timed_out", "crashed")
# After these, a larger world would only make it worse, or show the same.
NO_LARGER_AFTER = "was killed because memory ran out"


class Climb:
    """The state of one climb: what has failed so far, and how much of the whole time is left."""

    def __init__(self, plan: Plan, case: Case, progress: Progress, pace: Pace) -> None:
        self.plan, self.case, self.progress, self.pace = plan, case, progress, pace
        self.began = time.monotonic()
        self.failed: dict[str, str] = {}  # the last cell of each rung that did not pass
        self.told_all: set[str] = set()
        self.interruption = Interruption()

    def climb(self) -> None:
        """Climb to the top. Raises Interrupted once everything is stopped and written down."""
        _write_plan(self.plan, self.case)
        self.progress.plan([rung.spec for rung in self.plan.rungs])
        for note in self.plan.notes:
            self.progress.note(note)
        try:
            folder = tempfile.mkdtemp(prefix="trainprobe-")
        except OSError as error:
            raise CannotLook(f"No working folder can be made in {tempfile.gettempdir()}: {error.strerror}.", "Set TMPDIR to a folder with space.") from error
        try:
            with self.interruption:
                for place, rung in enumerate(self.plan.rungs):
                    self._rung(rung, os.path.join(folder, str(place)))
                if self.interruption.asked:
                    raise Interrupted
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _rung(self, rung: Rung, folder: str) -> None:
        lower = next((self.failed[name] for name in rung.spec.after if name in self.failed), "")
        if rung.because:
            self._skip(rung, rung.sizes[-1] if rung.sizes else self._full(rung), rung.unmet, rung.because)
        elif lower:
            name = lower.partition("@")[0]
            self._skip(rung, self._full(rung), f"lower-rung:{name}", f"{lower} did not pass, so that this rung would mean nothing")
        else:
            self._cells(rung, folder)

    def _cells(self, rung: Rung, folder: str) -> None:
        """Try the sizes, smallest first. After a failure only the largest is tried as well: two ranks cannot outvote each other."""
        for nproc in rung.sizes:
            largest = nproc == rung.sizes[-1]
            before = self.failed.get(rung.spec.name, "")
            if self.interruption.asked:
                self._skip(rung, nproc, "interrupted", "the climb was interrupted before it")
            elif self._left_s() <= 0:
                self._skip(rung, nproc, "time", f"the time for the whole climb, {self.plan.timeout_s or 0:g} s, was over")
            elif before and (not largest or rung.spec.name != USER_SCRIPT or before in self.told_all):
                why = "and shows enough" if before in self.told_all else "so that only the full size is tried after it" if not largest else ""
                self._skip(rung, nproc, f"lower-rung:{rung.spec.name}", f"{before} did not pass {why}".strip())
            else:
                self._cell(rung, nproc, os.path.join(folder, str(nproc)), largest=largest)

    def _cell(self, rung: Rung, nproc: int, folder: str, *, largest: bool) -> None:
        spec, plan, cell = rung.spec, self.plan, rung.cell(nproc)
        of_script = spec.name == USER_SCRIPT
        pace = self.pace
        deadline_s = min(self._left_s(), pace.run_s + pace.stall_s if of_script else plan.deadlines_s.get(spec.name, spec.timeout_s))
        self.progress.cell_began(spec.name, cell, nproc, spec.question, deadline_s)
        began, clock = time.time(), time.monotonic()
        try:
            os.makedirs(folder)
            made = self._launch(rung, nproc, folder, deadline_s)
        except OSError as error:
            self._write(rung, nproc, Result("not_measured", f"its working folder cannot be made: {error.strerror}"), began, 0.0, deadline_s)
            return
        with Keeper(folder) as keeper:
            watch = Watch(made, keeper, self.case, pace, plan.cwd, self.interruption)
            watch.cgroups.look(self.case, cell, "before")
            watch.start()
            result = script_cell.run(watch, largest=largest, hard_s=self._left_s()) if of_script else probe_cell.run(watch, deadline_s)
            result = held_against(result, spec.name, plan.thresholds)
            if keeper.trouble:
                self.progress.note(keeper.trouble)
                result = replace(result, outcome="not_measured", says=keeper.trouble) if result.outcome == "passed" else result
        if (self.interruption.asked and result.outcome == "timed_out") or result.more.get("stopped_because") == "interrupted":
            result = Result("not_measured", "it was interrupted", (), {**result.more, "stopped_because": "interrupted", "unmet": "interrupted"})
            self.case.add("interrupted", subject=JOB, cell=cell, source="signal", data={"phase": spec.name, "cell": cell})
        if of_script:
            result = replace(result, more={**result.more, "switched_on": dict(made.switched_on), "left_alone": list(made.left_alone)})
        self._write(rung, nproc, result, began, time.monotonic() - clock, deadline_s)
        shutil.rmtree(folder, ignore_errors=True)

    def _launch(self, rung: Rung, nproc: int, folder: str, deadline_s: float) -> launch.Launch:
        if rung.spec.name != USER_SCRIPT:
            return launch.probe(self.plan, rung, nproc, folder, deadline_s)
        return launch.command(self.plan, rung, nproc, folder) if self.plan.form == "command" else launch.script(self.plan, rung, nproc, folder)

    def _full(self, rung: Rung) -> int:
        return self.plan.nproc if rung.spec.scope == "ranks" else 1

    def _left_s(self) -> float:
        return float("inf") if self.plan.timeout_s is None else self.plan.timeout_s - (time.monotonic() - self.began)

    def _skip(self, rung: Rung, nproc: int, unmet: str, because: str) -> None:
        self._write(rung, nproc, Result("skipped", "", (), {"unmet": unmet, "skipped_because": because}), time.time(), 0.0, 0.0)

    def _write(self, rung: Rung, nproc: int, result: Result, began: float, took_s: float, deadline_s: float) -> None:
        spec, cell = rung.spec, rung.cell(nproc)
        if result.outcome in FAILED:
            self.failed[spec.name] = cell
            if result.tells_all or NO_LARGER_AFTER in result.says:
                self.told_all.add(cell)
        data: dict[str, Any] = {
            "rung": spec.rung,
            "probe": spec.name,
            "question": spec.question,
            "cell": cell,
            "nproc": nproc,
            "outcome": result.outcome,
            "took_s": round(took_s, 3),
            "deadline_s": round(deadline_s, 1) if deadline_s != float("inf") else 0.0,
            "says": result.says,
            "ranks": list(result.ranks),
            "skipped_because": "",
            "unmet": "",
            "measures": [],
            **result.more,
        }
        self.case.add("rung", subject=JOB, cell=cell, source="ladder", began=began, took_s=took_s, data=data)
        self.progress.cell_ended(spec.name, cell, result.outcome, took_s, result.says or str(result.more.get("skipped_because", "")))


def climb(plan: Plan, case: Case, progress: Progress, settings: Settings) -> None:
    """Climb the ladder that `plan` describes and write everything to `case`.

    Raises Interrupted after Ctrl-C or SIGTERM, once every child is stopped and what was learnt is in the case.
    """
    Climb(plan, case, progress, pace_of(settings)).climb()


def pace_of(settings: Settings) -> Pace:
    """The times of the settings file, over our defaults."""
    return replace(Pace(), first_output_s=settings.first_output_s, stall_s=settings.stall_s, run_s=settings.run_s)


def _write_plan(plan: Plan, case: Case) -> None:
    one = plan.interpreter
    case.add(
        "plan",
        source="ladder",
        data={
            "command": "diagnose",
            "nproc": plan.nproc,
            "world_size": plan.nproc,
            "gpus_requested": plan.gpus_requested,
            "gpus": plan.gpus,
            "backend": plan.backend,
            "device": plan.device,
            "form": plan.form,
            "script": plan.script.path if plan.script else None,
            "argv": list(plan.argv),
            "cwd": plan.cwd,
            "imports": list(plan.imports),
            "interpreter": {"path": one.path, "version": one.version, "torch": one.torch, "cuda": one.cuda, "reason": one.reason, "chosen_by": one.chosen_by},
            "rungs": [{"rung": rung.spec.rung, "probe": rung.spec.name, "question": rung.spec.question} for rung in plan.rungs],
            "only": list(plan.only),
            "skip": list(plan.skip),
            "timeout_s": plan.timeout_s,
            "ranks": list(plan.ranks),
            "rows": list(plan.rows),
            "ablate": plan.ablate,
            "knobs": [list(knob) for knob in plan.knobs],
            "dataset": plan.dataset,
            "collate": plan.collate,
            "batch_size": plan.batch_size,
            "workers": list(plan.workers),
            "model": plan.model,
            "planned": dict(plan.planned),
            "notes": list(plan.notes),
            "tool_version": __version__,
            "host": host_name(),
        },
    )
    if plan.gpus_seen is not None:
        record(case, "gpus", plan.gpus_seen, subject=host_subject(), cell="", source="NVML")
    if plan.script is not None:
        script = plan.script
        fault = script.syntax_error
        case.add(
            "script",
            source="ladder",
            outcome="unavailable" if script.reason else "ok",
            reason=script.reason,
            data={
                "path": script.path,
                "imports": list(script.imports),
                "optional": list(script.optional),
                "local": list(script.local),
                "distributed": script.distributed,
                "spawns": script.spawns,
                "syntax_error": to_json(fault) if fault else None,
            },
        )
