"""Climb the ladder: one cell after the other, each in its own processes, with all observations
written to the case.
"""

from __future__ import annotations

import tempfile

from trainprobe.case import Case
from trainprobe.collect.collectors.leftovers import LeftoverSearch, look_at_leftovers
from trainprobe.config import Settings
from trainprobe.errors import CannotLook
from trainprobe.ladder import cell_measures, resource_use
from trainprobe.ladder.ablation import ablate
from trainprobe.ladder.cells import Cell
from trainprobe.ladder.deadlines import deadlines
from trainprobe.ladder.node_running import NodesRunner
from trainprobe.ladder.pace import Pace
from trainprobe.ladder.plan import Plan, Rung
from trainprobe.ladder.plan_evidence import write_plan
from trainprobe.ladder.probes import USER_SCRIPT
from trainprobe.ladder.resuming import take_up
from trainprobe.ladder.running import Runner
from trainprobe.ladder.script_lint import lint_the_script
from trainprobe.model.progress import Progress
from trainprobe.model.subjects import JOB
from trainprobe.system.interruption import Interrupted, Interruption
from trainprobe.system.working_folders import make_working_folder, remove_working_folder


class Climb:
    """The order of one climb: which cells are run after what has failed so far."""

    def __init__(self, plan: Plan, case: Case, progress: Progress, settings: Settings) -> None:
        self.plan, self.case, self.progress, self.settings = plan, case, progress, settings
        self.interruption = Interruption()
        run_by = NodesRunner if plan.nodes else Runner
        self.runner = run_by(plan, case, progress, pace_of(settings), self.interruption)

    def climb(self) -> None:
        """Climb to the top. Raises Interrupted once everything is stopped and written down."""
        if self.plan.resume is not None:
            self.runner.done.update(take_up(self.plan, self.case))
            self.runner.resumed = sum(record.kind == "resumed" for record in self.case.evidence)
        write_plan(self.plan, self.case)
        self._look_for_earlier_runs()
        lint_the_script(self.plan, self.case, self.runner.left_s())
        self.progress.plan([rung.spec for rung in self.plan.rungs])
        for note in self.plan.notes:
            self.progress.note(note)
        try:
            self.runner.folder = make_working_folder()
        except OSError as error:
            raise CannotLook(
                f"No working folder can be made in {tempfile.gettempdir()}: {error.strerror}.",
                "Set TMPDIR to a folder with space.",
            ) from error
        try:
            with self.interruption:
                self.runner.open()
                for rung in self.plan.rungs:
                    self._rung(rung)
                if self.interruption.asked:
                    raise Interrupted
        finally:
            self.runner.close()
            remove_working_folder(self.runner.folder)

    def _look_for_earlier_runs(self) -> None:
        """Record the processes that an earlier run of the user's command has left on this host."""
        plan = self.plan
        if plan.form == "none" or plan.nodes:
            return
        script = plan.script.path if plan.script is not None else ""
        asked = LeftoverSearch(plan.argv, plan.cwd, script, plan.environ, plan.gpus_seen)
        look_at_leftovers(self.case, asked)

    def _rung(self, rung: Rung) -> None:
        lower = next((failed for name in rung.spec.after if (failed := self._failed(name))), "")
        if rung.because:
            full = Cell(rung.sizes[-1] if rung.sizes else self._full(rung))
            self.runner.skip(rung, full, rung.unmet, rung.because)
        elif lower:
            unmet = f"lower-rung:{lower.partition('@')[0]}"
            because = f"{lower} did not pass, so this rung would prove nothing"
            self.runner.skip(rung, Cell(self._full(rung)), unmet, because)
        else:
            if rung.spec.name == USER_SCRIPT:
                limits = cell_measures.of_limits(resource_use.limits())
                self.case.add("cell.measures", subject=JOB, source="ladder", data=limits)
            if rung.spec.scope == "host" and isinstance(self.runner, NodesRunner):
                self.runner.run_hosts(rung)
            elif rung.rows:
                self._grid(rung)
            else:
                self._sizes(rung)
            if rung.spec.name == USER_SCRIPT and self.plan.ablate:
                ablate(rung, self.runner, self.settings)

    def _sizes(self, rung: Rung) -> None:
        """Try the sizes, smallest first. After a failure only the largest follows: two ranks cannot
        outvote each other.
        """
        for cell in rung.cells:
            largest = cell.nproc == rung.sizes[-1]
            before = self._failed(rung.spec.name)
            enough = bool(before) and self.runner.done[before].data.get("tells_all") is True
            if rung.name(cell) in self.runner.done or self.runner.over(rung, cell):
                continue
            if before and (not largest or rung.spec.name != USER_SCRIPT or enough):
                why = f"{before} did not pass"
                if enough:
                    why += " and shows enough"
                elif not largest:
                    why += " so only the full size is tried after it"
                self.runner.skip(rung, cell, f"lower-rung:{rung.spec.name}", why)
            else:
                self.runner.run(rung, cell, largest=largest)

    def _grid(self, rung: Rung) -> None:
        """Try ranks and rows, the cheapest first, each cell to its own end. A failing cell settles
        all cells with at least as many ranks and rows.

        The others run nevertheless: they show whether the ranks or the rows matter.
        """
        for cell in rung.cells:
            own = {
                name: done
                for name, done in self.runner.done.items()
                if not done.cell.knob and name == rung.name(done.cell)
            }
            if rung.name(cell) in self.runner.done or self.runner.over(rung, cell):
                continue
            failed = [
                name for name, done in own.items() if done.failed and cell.dominates(done.cell)
            ]
            if failed:
                why = f"{failed[0]} did not pass, and this one has no fewer ranks and rows"
                self.runner.skip(rung, cell, f"lower-rung:{rung.spec.name}", why)
                continue
            timings = [done.timing for done in own.values() if done.outcome == "passed"]
            self.runner.run(rung, cell, largest=True, by=deadlines(cell, timings, self.settings))

    def _failed(self, probe: str) -> str:
        """The last unchanged cell of a rung that did not pass, empty where there is none."""
        return next(
            (
                name
                for name, done in reversed(self.runner.done.items())
                if name.partition("@")[0] == probe and done.failed and not done.cell.knob
            ),
            "",
        )

    def _full(self, rung: Rung) -> int:
        return self.plan.world if rung.spec.scope == "ranks" else 1


def climb(plan: Plan, case: Case, progress: Progress, settings: Settings) -> None:
    """Climb the ladder that `plan` describes and write everything to `case`.

    Raises Interrupted after Ctrl-C or SIGTERM, once every child is stopped and what was learnt is
    in the case.
    """
    Climb(plan, case, progress, settings).climb()


def pace_of(settings: Settings) -> Pace:
    """The times of the settings file, over our defaults."""
    return Pace(settings.first_output_s, settings.stall_s, settings.run_s)
