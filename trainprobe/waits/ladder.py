"""What the cells of the ladder come to as a whole: the verdict by rule (docs/design.md), and where
the ranks of the cell stood that failed first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts import Facts, Interrupted, Plan
from trainprobe.model.diagnosis import Verdict
from trainprobe.waits.data_timeouts import wait_expected
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.groups import failing_rungs, is_hung, suspect_groups
from trainprobe.waits.model_stress import left_unasked
from trainprobe.waits.open_questions import applies_not, as_given, doubts, outgrown, unanswered
from trainprobe.waits.predicted_limits import foreseen_groups, predictions
from trainprobe.waits.situation import Situation
from trainprobe.waits.standings import standings
from trainprobe.waits.suspects import SuspectGroup


def ladder_situation(facts: Facts) -> Situation:
    """How the job stands by all cells that were run."""
    groups = _foreseen(facts, suspect_groups(facts))
    verdict = verdict_of(facts, groups)
    says = groups[0].says if groups else _headline(facts, verdict)
    found = Situation("", verdict, conclusive=True, says=says, groups=groups)
    return replace(where_ranks_stood(facts, found), open=_left_open(facts))


def _foreseen(facts: Facts, groups: tuple[SuspectGroup, ...]) -> tuple[SuspectGroup, ...]:
    """The groups with what will fail at the planned size, unless something has failed already. A
    size that did not end is one of the points of such a prediction.
    """
    if any(group.mode != "check" for group in groups):
        return groups
    ahead = foreseen_groups(facts, predictions(facts))
    grown = {group.cell for group in ahead if group.how == "slow"}
    rest = (
        group for group in groups if group.cell not in grown or not wait_expected(facts, group.cell)
    )
    return (*rest, *ahead)


def verdict_of(facts: Facts, groups: Sequence[SuspectGroup]) -> Verdict:
    """Hung before crashed before at-risk; healthy only where all that applies was seen to pass."""
    modes = {group.mode for group in groups}
    ranked = [
        rung
        for rung in failing_rungs(facts)
        if any(group.cell == rung.cell and group.mode in ("hang", "crash") for group in groups)
    ]
    if "hang" in modes or any(is_hung(facts, rung) for rung in ranked):
        return "hung"
    if "crash" in modes:
        return "crashed"
    if "slow" in modes:
        return "slow"
    if modes:
        return "at-risk"
    return "undetermined" if doubts(facts) else "healthy"


def where_ranks_stood(facts: Facts, situation: Situation) -> Situation:
    """The situation with the ranks of the first group's cell, or of the last one that passed."""
    groups = situation.groups
    cell = groups[0].cell if groups else ""
    rungs = as_given(facts)
    rung = next((rung for rung in rungs if rung.cell == cell), None)
    if rung is None:
        launched = [rung for rung in rungs if rung.nproc > 1 and rung.outcome == "passed"]
        rung = launched[-1] if launched else None
    plan = facts.one(Plan)
    size = max(plan.nproc, plan.world_size) if plan else 0
    if rung is None or (
        groups and not groups[0].ranks and not groups[0].victims and rung.nproc <= 1
    ):
        return replace(situation, cell=cell, world_size=size)
    blamed = {rank: group for group in groups if group.cell == rung.cell for rank in group.victims}
    ranks = standings(facts, rung)
    waits_for = {
        one.rank: ranks_say(blamed[one.rank].ranks)
        for one in ranks
        if one.alive and one.rank in blamed and blamed[one.rank].ranks
    }
    return replace(situation, cell=cell, world_size=rung.nproc, ranks=ranks, waits_for=waits_for)


def _headline(facts: Facts, verdict: Verdict) -> str:
    """Where nobody is suspected."""
    if verdict == "healthy":
        passed = sum(1 for rung in as_given(facts) if rung.outcome == "passed")
        return (
            f"All {passed} checks that apply here passed. {left_unasked(facts)}"
            if passed != 1
            else f"The one check that applies here passed. {left_unasked(facts)}"
        ).strip()
    if facts.one(Interrupted) is not None:
        return "The run was interrupted before it could decide."
    missed = unanswered(facts)
    if missed:
        return (
            f"The case ends before rung {missed[0]} has its answer: the run was killed, or the case"
            " is damaged."
        )
    missing = next(
        (
            rung
            for rung in as_given(facts)
            if rung.outcome in ("not_measured", "skipped") and not applies_not(rung)
        ),
        None,
    )
    if missing is not None:
        return (
            f"rung {missing.probe} could not be measured:"
            f" {missing.skipped_because or missing.says or 'no reason was given'}"
        )
    return "Nothing was found, and not everything could be looked at."


def _left_open(facts: Facts) -> tuple[str, ...]:
    rows = [f"{name}: the case ends before its answer" for name in unanswered(facts)]
    probes: dict[str, list[str]] = defaultdict(list)
    rungs = as_given(facts)
    for rung in rungs:
        if outgrown(rung, rungs):
            continue
        if rung.outcome == "not_measured" or (
            rung.outcome == "skipped"
            and not applies_not(rung)
            and not rung.unmet.startswith("lower-rung")
        ):
            probes[rung.skipped_because or rung.says or "no reason was given"].append(rung.probe)
    return (
        *rows,
        *(f"{', '.join(dict.fromkeys(names))}: {reason}" for reason, names in probes.items()),
    )
