"""The suspect group of a log that simply stops: the phase at whose lines it ends."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainprobe.facts import Facts, LogEvent, LogJob, LogPhase, LogProgress
from trainprobe.facts.log_phases import FULL_USE
from trainprobe.logtext.phases import phases
from trainprobe.waits.suspects import PROBE, SuspectGroup

FIRST_STEPS = "first-steps"
LEAST_ALIKE = 40  # characters at the end of a line, behind a bar that was not overwritten
_NUMBERS = re.compile(r"\d+")


def last_phases(facts: Facts, cell: str) -> tuple[LogPhase, ...]:
    """Where the ranks of one attempt stopped, those in the latest phase first."""
    order = {name: number for number, name in enumerate(phases())}
    told = facts.of(LogPhase, cell=cell)
    return tuple(sorted(told, key=lambda one: (-order[one.phase], -one.place)))


def phase_group(facts: Facts, job: LogJob, says: str) -> SuspectGroup | None:
    """Nobody in particular, with the phase at which all ranks stopped, or some of them at the
    latest; None where no phase is told. It is hung only where the text says that it waits.
    """
    told = last_phases(facts, job.cell)
    if not told or not job.ends or _went_on(facts, told):
        return None
    if not phases()[told[0].phase].likely(told[0].signs):
        return None
    if _usual(facts, told[0]):
        return None
    if phases()[told[0].phase].ranks and not _several(job, told):
        return None
    first = told[0]
    sets_up = phases()[first.phase].everyone
    waits = next(
        (one.waits for one in told if one.waits and (sets_up or one.waits != FULL_USE)), ""
    )
    behind = _behind(told)
    more = f", and it waits: «{waits}»" if waits else ""
    return SuspectGroup(
        job.cell,
        PROBE,
        behind,
        "never-joined" if behind else "stuck-inside",
        f"{says.partition(': ')[0]} {phases()[first.phase].when}{more}",
        "hang",
        evidence=tuple(dict.fromkeys(id_ for one in told for id_ in one.evidence))[:8],
        world_size=job.world_size or 1,
        phase=first.phase,
        waits=bool(waits),
    )


def _several(job: LogJob, told: Sequence[LogPhase]) -> bool:
    """Whether the log shows more than one process, or that there may be more."""
    signs = {sign for one in told for sign in one.signs}
    named = (job.world_size or 0) > 1 or bool(job.ranks) or bool(job.launcher)
    return named or not signs.isdisjoint(("several-processes", "several-ranks", "several-nodes"))


def _went_on(facts: Facts, told: Sequence[LogPhase]) -> bool:
    """Whether steps were made, so that the job has long passed its start."""
    order = list(phases())
    made = any(one.step for one in facts.of(LogProgress, cell=told[0].cell))
    return made and order.index(told[0].phase) < order.index(FIRST_STEPS)


def _usual(facts: Facts, told: LogPhase) -> bool:
    """Whether it is a warning of the steps themselves that came before an earlier one as well: that
    step was made all the same.
    """
    order = list(phases())
    if not phases()[told.phase].warns or order.index(told.phase) < order.index(FIRST_STEPS):
        return False
    form = _NUMBERS.sub("0", told.line)[-LEAST_ALIKE:]
    warned = [
        event.place
        for event in facts.of(LogEvent, cell=told.cell)
        if event.place is not None and _NUMBERS.sub("0", event.line).endswith(form)
    ]
    made = [
        place
        for one in facts.of(LogProgress, cell=told.cell)
        for place, step in one.marks
        if step > 0
    ]
    return bool(warned) and any(min(warned) < place <= told.first_place for place in made)


def _behind(told: Sequence[LogPhase]) -> tuple[int, ...]:
    """Ranks that never came to the latest phase, where every rank tells of it."""
    latest = told[0].phase
    ranks = {one.rank for one in told if one.phase == latest} - {None}
    if not phases()[latest].everyone or len(ranks) < 2:
        return ()
    return tuple(sorted(one.rank for one in told if one.rank is not None and one.rank not in ranks))
