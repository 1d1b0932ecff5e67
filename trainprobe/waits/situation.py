"""How a job stands, before any cause is weighed. Every kind of evidence comes to this: looks at a
live job, the cells of the ladder, dumps, logs, and the checks of `ready`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trainprobe.model.diagnosis import RankRow, Verdict, World
from trainprobe.waits.standings import AT_THE_STORE, IN_COLLECTIVE, Standing
from trainprobe.waits.suspects import SuspectGroup

# Leaf classes of a thread that waits for other ranks, or for a process of its own.
_WAITS = frozenset({*IN_COLLECTIVE, AT_THE_STORE, "dataloader", "child-wait"})
_VERDICT_OF: Mapping[str, Verdict] = {"crash": "crashed", "slow": "slow", "check": "at-risk"}

STILL_THERE = "if it still runs, on each node: trainprobe attach"
"""The next look at a job whose log simply stops."""


@dataclass(frozen=True)
class Echo:
    """Ranks that failed in one way after the suspects of `cell` had, and a sentence on them."""

    cell: str
    ranks: tuple[int, ...]
    says: str


@dataclass(frozen=True)
class Situation:
    """`says` is the headline. `groups` are the suspects, most to blame first.

    `waits_for` says for a rank whom it waits for; `next_look` what would tell more. `running`: its
    processes are still there. `origin`: whoever failed first is known. `remarks` are sentences on
    what is judged apart, `open` on what was not measured and could have changed the verdict.
    `attempts` are those of a job that was started again, the last one first.
    `tentative`: the groups count only where one of their causes can be named (`settled`).
    """

    cell: str
    verdict: Verdict
    conclusive: bool
    says: str
    groups: tuple[SuspectGroup, ...] = ()
    ranks: tuple[Standing, ...] = ()
    world_size: int = 0
    waits_for: Mapping[int, str] = field(default_factory=dict)
    next_look: str = ""
    running: bool = False
    origin: bool = False
    echoes: tuple[Echo, ...] = ()
    remarks: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    attempts: tuple[Situation, ...] = ()
    tentative: bool = False

    @property
    def world(self) -> World:
        naps = self.verdict == "healthy"
        rows = (
            RankRow(
                one.rank,
                one.host,
                one.pid,
                # it may go on, and yet just now it waits for somebody
                "waiting" if one.state == "computing" and one.leaf in _WAITS else one.state,
                one.where,
                self.waits_for.get(one.rank, ""),
                # whoever goes on and waits for nobody has only napped at both looks
                None if naps and one.rank not in self.waits_for else one.since_s,
            )
            for one in self.ranks
        )
        return World(size=self.world_size or len(self.ranks), ranks=tuple(rows))


def settled(situation: Situation, title: str, component: str = "") -> Situation:
    """What a tentative situation comes to, once its causes are weighed: `title` is the named cause
    of its first group, empty where none can be named; `component` says where its trouble shows.
    """
    if not title and component:
        last = situation.attempts[0]
        says = f"{component}: {last.says[:1].lower()}{last.says[1:]}"
        return _of_last(situation, says=says, groups=_but_stopped(situation))
    stopped = next((one for one in situation.groups if one.phase), None)
    if not title:
        without = _of_last(situation, groups=())
        remarks = failed_before(without)
        if stopped is not None:
            return replace(
                _of_last(situation, says=stopped.says, groups=(stopped,)), remarks=remarks
            )
        says = without.attempts[0].says
        return replace(without, says=says, remarks=remarks, next_look=STILL_THERE)
    groups = _but_stopped(situation)
    first = groups[0]
    if first.mode == "hang":  # where it stopped is known, and not whether it would have gone on
        return _of_last(situation, groups=groups)
    last = situation.attempts[0]
    says = f"{title}: {last.says[:1].lower()}{last.says[1:]}"
    groups = (replace(first, says=says), *groups[1:])
    return replace(
        _of_last(situation, verdict=_VERDICT_OF[first.mode], conclusive=True),
        says=says,
        groups=groups,
    )


def _but_stopped(situation: Situation) -> tuple[SuspectGroup, ...]:
    """The groups without the phase at which the log stops, where another one says more."""
    first, *others = situation.groups
    return (first, *(one for one in others if not one.phase))


def failed_before(situation: Situation) -> tuple[str, ...]:
    """What earlier attempts died of, where the last one is well and so no group tells of it."""
    if situation.groups:
        return ()
    return tuple(
        f"an earlier attempt ({one.cell}) failed: {one.says}"
        for one in situation.attempts[1:]
        if one.groups
    )


def _of_last(situation: Situation, **changes: object) -> Situation:
    last, *earlier = situation.attempts
    changed = replace(last, **changes)  # type: ignore[arg-type] # fields of Situation
    return replace(situation, attempts=(changed, *earlier), **changes)  # type: ignore[arg-type]
