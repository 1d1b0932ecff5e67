"""A job of which every rank ended while it was looked at: who is to blame, as far as the ends
tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts import Facts, RankEnding, Rung
from trainprobe.facts.ending_joins import SAME_MOMENT_S
from trainprobe.waits.crash import crash_groups
from trainprobe.waits.standings import Standing
from trainprobe.waits.suspects import SuspectGroup

ITS_LOG = "trainprobe explain <LOG>, with the job's own log: what it printed last says why it ended"


def all_ended(ranks: Sequence[Standing]) -> bool:
    """Has every rank that was here ended while we looked?"""
    here = [standing for standing in ranks if standing.pid is not None]
    return bool(here) and all(standing.ending is not None for standing in here)


def ended_together(
    facts: Facts, rung: Rung, ranks: Sequence[Standing]
) -> tuple[tuple[Standing, ...], tuple[SuspectGroup, ...], str]:
    """The ranks as their ends left them, whom they blame, and a sentence. Nobody is to blame
    where nobody is known to have failed.
    """
    endings = [standing.ending for standing in ranks if standing.ending is not None]
    launchers = [fact for fact in facts.of(RankEnding, cell=rung.cell) if fact.role == "launcher"]
    says = "the job ended while it was looked at"
    if not any(fact.abnormal for fact in (*endings, *launchers)):
        how = (
            "every rank with exit code 0"
            if all(ending.code == 0 for ending in endings)
            else "and how could not be seen"
        )
        return tuple(ranks), (), f"{says}, {how}"
    first = min(
        (ending.failed_at for ending in endings if ending.failed_at is not None), default=None
    )
    left = tuple(_left_by(standing, first) for standing in ranks)
    groups = crash_groups(facts, rung, left)
    return left, groups, f"{says}: {groups[0].says}" if groups else says


def _left_by(standing: Standing, first: float | None) -> Standing:
    """One that gave up after another's end may only have lost its peer: its exit code alone does
    not tell.
    """
    ending = standing.ending
    if ending is None or not ending.abnormal:
        return standing
    later = (
        ending.how == "exited"
        and first is not None
        and ending.failed_at is not None
        and ending.failed_at > first + SAME_MOMENT_S
    )
    return replace(standing, state="crashed", ending=replace(ending, echo=ending.echo or later))
