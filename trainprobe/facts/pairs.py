"""What came of trying nodes in pairs and larger groups, and what all of it shows of nodes and
links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainprobe.facts.shared_folders import parse_pair_files
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

if TYPE_CHECKING:  # only who reads tries of nodes pays for the search
    from trainprobe import isolation

MOST_MEMBERS, MOST_LINKS = 65_536, 64


@dataclass(frozen=True)
class PairTry(Fact):
    """One group of nodes that was tried once. `how` is one of isolation.tries.HOWS, empty where
    it passed; `whole` is what the search knows of it.
    """

    round: int = 0
    arm: str = "tcp"
    members: tuple[str, ...] = ()
    outcome: str = "not_measured"
    how: str = ""
    says: str = ""
    missing: tuple[str, ...] = ()
    whole: isolation.Try | None = None


@dataclass(frozen=True)
class PairsDone(Fact):
    """The search is over. `left` holds what was not tried, in sentences; where it is empty all
    that was asked for was tried.
    """

    nodes: tuple[str, ...] = ()
    tried: int = 0
    left: tuple[str, ...] = ()


@dataclass(frozen=True)
class BadNode(Fact):
    """A node that fails with partners that are good with others. `tries` are the ids of the
    evidence of those. It may be left out where `certain`.
    """

    host: str = ""
    how: str = "failed"
    says: str = ""
    tries: tuple[str, ...] = ()
    arm: str = "tcp"
    certain: bool = True


@dataclass(frozen=True)
class BadLink(Fact):
    """Two nodes that fail with each other. `direction` is `a->b` where only that way fails, else
    empty. Not `certain` where one of the two may be at fault instead.
    """

    a: str = ""
    b: str = ""
    direction: str = ""
    how: str = "failed"
    says: str = ""
    tries: tuple[str, ...] = ()
    arm: str = "tcp"
    certain: bool = True


@dataclass(frozen=True)
class ScaleFault(Fact):
    """Groups of `size` nodes fail and smaller ones pass; `members` without whom a group of that
    size passes, empty where nobody can be named.
    """

    size: int = 0
    members: tuple[str, ...] = ()
    says: str = ""
    tries: tuple[str, ...] = ()
    arm: str = "tcp"


@dataclass(frozen=True)
class CommonFault(Fact):
    """No pair of `hosts` passes; or, with `camps`, sets of them pass among themselves and never
    across. Leaving nodes out heals nothing.
    """

    hosts: tuple[str, ...] = ()
    how: str = "failed"
    says: str = ""
    tries: tuple[str, ...] = ()
    camps: tuple[tuple[str, ...], ...] = ()
    arm: str = "tcp"


def parse_pair(record: Evidence) -> list[Fact]:
    data = record.data
    if fields.flag(data, "done"):
        return [
            PairsDone(
                (record.id,),
                record.cell,
                None,
                fields.texts(data, "nodes")[:MOST_MEMBERS],
                fields.whole(data, "tried") or 0,
                fields.texts(data, "left"),
            )
        ]
    whole = _try(record)
    return [
        PairTry(
            (record.id,),
            record.cell,
            None,
            whole.round,
            whole.arm,
            whole.members,
            whole.outcome,
            whole.how,
            whole.says,
            whole.missing,
            whole,
        ),
        *parse_pair_files(record),
    ]


def _try(record: Evidence) -> isolation.Try:
    from trainprobe import isolation
    from trainprobe.isolation.trials import ARMS, HOWS, OUTCOMES

    data = record.data
    members = tuple(
        dict.fromkeys(name for name in fields.texts(data, "members")[:MOST_MEMBERS] if name)
    )
    arm, outcome, how = (fields.text(data, name) for name in ("arm", "outcome", "how"))
    if arm not in ARMS or not members:
        raise fields.UnreadableError("no group of nodes")
    measures = {
        str(name): value
        for name, value in fields.part(data, "measures").items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    return isolation.Try(
        members,
        arm,
        next((one for one in OUTCOMES if one == outcome), "not_measured"),
        fields.whole(data, "round") or 0,
        fields.whole(data, "attempt") or 1,
        fields.text(data, "phase", "pairs"),
        how if how in HOWS else "",
        fields.text(data, "says", cap=2000),
        tuple(name for name in fields.texts(data, "missing") if name in members),
        tuple(fields.each(fields.items(data, "links")[:MOST_LINKS], _link)),
        measures,
        record.id,
        fields.whole(data, "rail"),
    )


def _link(data: Mapping[str, Any]) -> isolation.Link:
    from trainprobe import isolation
    from trainprobe.isolation.trials import HOWS

    how = fields.text(data, "how")
    return isolation.Link(
        fields.text(data, "a"),
        fields.text(data, "b"),
        how if how in HOWS else ("failed" if how else ""),
        fields.text(data, "says", cap=2000),
        fields.number(data, "rtt_ms"),
        fields.number(data, "mbps"),
    )


def join_pairs(facts: list[Fact]) -> list[Fact]:
    """Add what all tries of a cell show together. The outcome of a pair that is slow beside its
    peers is known only here.
    """
    found = list(facts)
    for cell in dict.fromkeys(fact.cell for fact in facts if isinstance(fact, PairTry)):
        tries = [fact for fact in facts if isinstance(fact, PairTry) and fact.cell == cell]
        done = next(
            (fact for fact in facts if isinstance(fact, PairsDone) and fact.cell == cell),
            PairsDone(),
        )
        found += _shown(tries, done.nodes, cell)
    return found


def _shown(tries: Sequence[PairTry], nodes: Sequence[str], cell: str) -> list[Fact]:
    from trainprobe import isolation

    verdict = isolation.conclude([one.whole for one in tries if one.whole is not None], nodes)

    def told(ids: tuple[str, ...]) -> tuple[tuple[str, ...], str, None]:
        return ids, cell, None

    shown: list[Fact] = [
        BadNode(*told(one.tries), one.host, one.how, one.says, one.tries, one.arm, one.certain)
        for one in verdict.nodes
    ]
    for link in verdict.links:
        way = "->".join(link.direction)
        shown.append(
            BadLink(
                *told(link.tries),
                link.a,
                link.b,
                way,
                link.how,
                link.says,
                link.tries,
                link.arm,
                link.certain,
            )
        )
    shown += [
        ScaleFault(*told(one.tries), one.size, one.members, one.says, one.tries, one.arm)
        for one in verdict.sizes
    ]
    shown += [
        CommonFault(*told(one.tries), one.hosts, one.how, one.says, one.tries, one.camps, one.arm)
        for one in verdict.shared
    ]
    return shown
