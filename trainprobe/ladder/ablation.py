"""The smallest failing cell once more, with one knob changed at a time: which one heals it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainprobe.config import Settings
from trainprobe.ladder.cells import smallest
from trainprobe.ladder.deadlines import RUN_FLOOR_S, TIMES, Deadlines, deadlines
from trainprobe.ladder.knobs import AGAIN, Turn, turns
from trainprobe.ladder.plan import Rung
from trainprobe.ladder.running import Done, Runner
from trainprobe.ladder.script_cell import USAGE_ERROR
from trainprobe.model.subjects import JOB

NOTHING_RAN_S = 60.0
STEPS_ENOUGH = 3  # after so many steps a failing cell has shown its rhythm


def ablate(rung: Rung, runner: Runner, settings: Settings) -> None:
    """Find the smallest failing cell and change its knobs, as far as the time allows. What is left
    out is recorded with its reason.
    """
    mine = [done for name, done in runner.done.items() if name == rung.name(done.cell)]
    cell = smallest(done.cell for done in mine if done.failed and not done.cell.knob)
    failing = None if cell is None else runner.done[rung.name(cell)]
    plan = runner.plan
    tried = turns(plan.argv, plan.knobs, plan.environ, gpus=plan.gpus, witness=plan.witness)
    because = "no cell failed" if failing is None else _pointless(failing)
    row: Mapping[str, Any] = {
        "of_cell": rung.name(cell) if cell else "",
        "knobs": [turn.label for turn in tried],
        "because": because,
    }
    runner.case.add("ablation", subject=JOB, cell=str(row["of_cell"]), source="ladder", data=row)
    if failing is None:
        return
    if because:
        runner.progress.note(f"No knob is changed: {because}.")
        return
    by = _deadlines(failing, mine, settings)
    for turn in tried:
        because = _nothing_to_change(turn, failing.data.get("could"))
        if because:
            _turn(rung, failing, Turn(turn.label, None, because), runner, by)
            continue
        _turn(rung, failing, turn, runner, by)
        done = runner.done.get(rung.name(failing.cell.with_knob(turn.label, rung.spec.name)))
        if done is not None and done.outcome == "passed":
            _turn(rung, failing, AGAIN, runner, by)  # to rule out that it passed by chance


def _turn(rung: Rung, failing: Done, turn: Turn, runner: Runner, by: Deadlines) -> None:
    cell, by_then_s = failing.cell.with_knob(turn.label, rung.spec.name), failing.timing.took_s
    if rung.name(cell) in runner.done:
        return
    if turn.change is None:
        runner.skip(rung, cell, "knob:not-here", turn.because)
    elif runner.interruption.asked or runner.left_s() <= 0:
        runner.over(rung, cell)
    elif runner.left_s() < by_then_s:
        left = f"{runner.left_s():.0f} s of the time limit were left"
        runner.skip(rung, cell, "time", f"{left}, and the cell fails only after {by_then_s:.0f} s")
    else:
        runner.run(rung, cell, largest=True, by=by, turn=turn)


def _nothing_to_change(turn: Turn, could: object) -> str:
    """Why a knob for the witness cannot matter: the cell failed before there was anything to
    change.
    """
    by_witness = turn.change is not None and turn.change.how == "witness"
    if not by_witness or not isinstance(could, Mapping) or not could:
        return ""
    for label, there, because in (
        ("workers=0", could.get("workers"), "none of its DataLoaders had workers when it failed"),
        ("batch=half", could.get("loaders"), "it had no DataLoader yet when it failed"),
        ("start=spawn", could.get("children"), "it had started no other process when it failed"),
        (
            "evaluation=off",
            could.get("trainer"),
            "it had imported neither transformers' Trainer nor Lightning's when it failed",
        ),
    ):
        if turn.label == label and not there:
            return because
    return ""


def _deadlines(failing: Done, others: Sequence[Done], settings: Settings) -> Deadlines:
    """The deadlines of the cell itself, derived from the smaller cells, and from the failing one
    where it made enough steps.
    """
    timings = [done.timing for done in others if done.outcome == "passed" and not done.cell.knob]
    rhythm = failing.data.get("rhythm")
    steps = rhythm.get("steps") if isinstance(rhythm, Mapping) else None
    if isinstance(steps, int) and steps >= STEPS_ENOUGH:
        timings.append(failing.timing)
    by = deadlines(failing.cell, timings, settings)
    if failing.cell.rows is not None:
        return by
    # Without rows a command may never end: it passes once it runs well beyond the moment of the
    # failure.
    silent_s = failing.data.get("silent_s") if failing.outcome == "timed_out" else 0.0
    silent_s = silent_s if isinstance(silent_s, (int, float)) else 0.0
    failed_s = max(0.0, failing.timing.took_s - silent_s)
    run_s = min(settings.run_s, max(RUN_FLOOR_S, TIMES * failed_s))
    says = (
        f"{TIMES:g} times the {failed_s:.0f} s after which {failing.data.get('cell', 'it')} had"
        f" failed, at least {RUN_FLOOR_S:g} s, at most the settings"
    )
    return replace(by, run_s=run_s, sources={**by.sources, "run_s": says})


def _pointless(failing: Done) -> str:
    """Why no knob could show anything, empty where one may."""
    if failing.data.get("usage_error") is True and failing.timing.took_s <= NOTHING_RAN_S:
        cell = failing.data.get("cell", "the command")
        return f"{cell} refused its own arguments (exit code {USAGE_ERROR}) before anything ran"
    if "could not be started" in str(failing.data.get("says", "")):
        return "the command could not be started"
    return ""
