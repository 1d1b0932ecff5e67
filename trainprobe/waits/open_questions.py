"""Which rungs of a climb have no answer that could have changed the verdict."""

from __future__ import annotations

from trainprobe.facts import Facts, Interrupted, Plan, Rung
from trainprobe.waits.grid import COMMAND, is_knob, outgrown_by

# Why a rung was skipped without leaving a doubt: it does not apply, or the user asked for it.
DOES_NOT_APPLY = ("gpu", "nccl", "script", "dataset", "model", "asked", "ranks>=2")


def doubts(facts: Facts) -> bool:
    """Is there a rung whose answer could have changed the verdict and was not had?"""
    rungs = as_given(facts)
    if (
        facts.one(Interrupted) is not None
        or not any(rung.outcome == "passed" for rung in rungs)
        or unanswered(facts)
    ):
        return True
    return any(
        rung.outcome == "not_measured" or (rung.outcome == "skipped" and not applies_not(rung))
        for rung in rungs
        if not outgrown(rung, rungs)
    )


def outgrown(rung: Rung, rungs: list[Rung]) -> bool:
    """A cell of the command that told nothing, and a larger one passed."""
    return rung.probe == COMMAND and outgrown_by(
        rung, [one for one in rungs if one.probe == COMMAND]
    )


def unanswered(facts: Facts) -> tuple[str, ...]:
    """The planned rungs of which the case says nothing: whoever gathered was ended before them,
    or the case is damaged.
    """
    plan = facts.one(Plan)
    if plan is None:
        return ()
    largest: dict[str, int] = {}
    most_rows = max(plan.rows, default=0)
    for rung in as_given(facts):
        if rung.rows is None or rung.probe != COMMAND or rung.rows >= most_rows:
            largest[rung.probe] = max(rung.nproc, largest.get(rung.probe, 0))
    return tuple(
        name
        for name in plan.probes
        if largest.get(name, 0) < (max(plan.nproc, plan.world_size) if name == COMMAND else 1)
    )


def as_given(facts: Facts) -> list[Rung]:
    """The cells without those in which something was changed: these are about the cause, and no
    answer of their own. Of a cell tried again the last.
    """
    return list(
        {(rung.probe, rung.cell): rung for rung in facts.of(Rung) if not is_knob(rung)}.values()
    )


def applies_not(rung: Rung) -> bool:
    return rung.unmet in DOES_NOT_APPLY
