"""A group of suspects that the logs of one attempt tell of, and the situation that it makes."""

from __future__ import annotations

from collections.abc import Iterable

from trainprobe.facts import LogJob
from trainprobe.model.diagnosis import Verdict
from trainprobe.model.facts import Fact
from trainprobe.model.waits import SuspectHow
from trainprobe.waits.situation import Situation
from trainprobe.waits.suspects import PROBE, Mode, SuspectGroup


def log_group(
    job: LogJob,
    how: SuspectHow,
    says: str,
    mode: Mode,
    evidence: tuple[str, ...],
    ranks: tuple[int, ...] = (),
) -> SuspectGroup:
    """These ranks of one attempt, or nobody in particular."""
    world = job.world_size or 1
    return SuspectGroup(
        job.cell, PROBE, ranks, how, says, mode, evidence=evidence, world_size=world
    )


def ids_of(facts: Iterable[Fact]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_ for fact in facts for id_ in fact.evidence))


def ended(group: SuspectGroup) -> Situation:
    verdict: Verdict = (
        "hung" if group.mode == "hang" else "slow" if group.mode == "slow" else "crashed"
    )
    return Situation(group.cell, verdict, conclusive=True, says=group.says, groups=(group,))
