"""Ranks that compute in silence for longer than smaller cells of the same command let expect:
they are at work, and do not stand still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainprobe.facts import Facts, Measured, Rung
from trainprobe.facts.cell_measures import COMMAND
from trainprobe.scaling import Point
from trainprobe.scaling.wording import amount, number
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.standings import Standing
from trainprobe.waits.suspects import SuspectGroup

STARTED, ENDED = "first_step_s", "took_s"


@dataclass(frozen=True)
class SilentWork:
    """`smaller` are the seconds that the command needed with fewer rows, fewest rows first:
    until its first step, or, where this cell has made steps, in all.
    """

    rung: Rung
    silent_s: float
    smaller: tuple[Point, ...]
    facts: tuple[Measured, ...]

    @property
    def took_s(self) -> float:
        """How long this cell ran; it needs at least as long."""
        return self.rung.elapsed_s or self.silent_s

    @property
    def says(self) -> str:
        """`where 200 rows needed 1.2 s`; empty where no smaller cell was measured."""
        return (
            f"where {number(self.smaller[-1].size)} rows needed"
            f" {amount(self.smaller[-1].value, 's')}"
            if self.smaller
            else ""
        )


def silent_work(facts: Facts, rung: Rung) -> SilentWork | None:
    """What smaller cells needed of that for which this one was ended; None for a cell that ended
    otherwise.
    """
    if not rung.outgrown or rung.outcome != "timed_out" or rung.silent_s is None:
        return None
    own = [
        fact for fact in facts.of(Measured) if fact.probe == COMMAND and not fact.labels.get("knob")
    ]
    name = (
        ENDED if any(fact.name == STARTED and fact.cell == rung.cell for fact in own) else STARTED
    )
    at: dict[float, Measured] = {}
    for fact in own:
        rows, ranks = fact.labels.get("rows"), fact.labels.get("ranks", 1)
        if (
            not isinstance(rows, int)
            or not isinstance(ranks, int)
            or not 0 < rows < (rung.rows or 0)
            or ranks > rung.nproc
        ):
            continue
        if fact.name == name and fact.value > 0 and (rows not in at or fact.value > at[rows].value):
            at[rows] = fact
    return SilentWork(
        rung,
        rung.silent_s,
        tuple(Point(float(rows), at[rows].value) for rows in sorted(at)),
        tuple(at[rows] for rows in sorted(at)),
    )


def at_work(
    facts: Facts, rung: Rung, ranks: Sequence[Standing], groups: Sequence[SuspectGroup]
) -> tuple[SuspectGroup, ...]:
    """The same groups, with those of ranks that were seen to compute as one that says so:
    wherever each of them is, they do not wait.
    """
    work = silent_work(facts, rung)
    # A line that takes most of the time is seen at each look: who stays there and uses the
    # processor works too, beside one that was seen to move.
    computing = {
        standing.rank: standing for standing in ranks if standing.state in ("computing", "spinning")
    }
    busy = [
        group
        for group in groups
        if group.mode == "hang" and group.ranks and computing.keys() >= set(group.ranks)
    ]
    members = tuple(sorted({rank for group in busy for rank in group.ranks}))
    if work is None or not any(computing[rank].state == "computing" for rank in members):
        return tuple(groups)
    where = computing[members[0]].where
    verb = "computes" if len(members) == 1 else "compute"
    says = (
        f"{ranks_say(members)} {verb} in silence for"
        f" {amount(work.silent_s, 's')}{f' at {where}' if where else ''}{f', {work.says}' if work.says else ''}"  # noqa: E501
    )
    one = replace(
        busy[0],
        ranks=members,
        says=says,
        victims=tuple(rank for rank in busy[0].victims if rank not in members),
        evidence=tuple(
            dict.fromkeys([*rung.evidence, *(id_ for group in busy for id_ in group.evidence)])
        ),
    )
    return (one, *(group for group in groups if group not in busy))
