"""What the traffic between pairs of nodes adds to the readiness of a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trainprobe.facts import CheckProgram, Facts, ReadyPlan
from trainprobe.facts.node_checks import CELL
from trainprobe.facts.pairs import BadLink, BadNode, CommonFault, PairsDone, PairTry, ScaleFault
from trainprobe.model.node_names import folded
from trainprobe.model.waits import SuspectHow
from trainprobe.waits.suspects import SuspectGroup

PAIR = "pair"
CHECK = "pairs"
# A link that is slow, or loses some, lets a job start; what passes nothing, or what is wrong, does
# not.
_DEGRADED = frozenset({"loss", "delay", "slow"})


def pair_groups(facts: Facts) -> tuple[SuspectGroup, ...]:
    """A group for each node that fails with good partners, each link between good nodes, and for
    what all of them share.
    """
    groups = [_group((one.host,), one.says, one.how, one.evidence) for one in facts.of(BadNode)]
    for link in facts.of(BadLink):
        start, _, end = link.direction.partition("->")
        groups.append(
            _group(
                (link.a, link.b),
                link.says,
                link.how,
                link.evidence,
                ((start or link.a, end or link.b),),
            )
        )
    groups += [
        _group(one.members, one.says, "failed", one.evidence) for one in facts.of(ScaleFault)
    ]
    return (
        *groups,
        *(_group(one.hosts, one.says, one.how, one.evidence) for one in facts.of(CommonFault)),
    )


def surely_at_fault(facts: Facts) -> frozenset[str]:
    """The nodes that may be left out for what their traffic showed: seen with several good
    partners.
    """
    ends = {end for link in facts.of(BadLink) if link.certain for end in (link.a, link.b)}
    members = {name for fault in facts.of(ScaleFault) for name in fault.members}
    return frozenset({node.host for node in facts.of(BadNode) if node.certain} | ends | members)


def untried(facts: Facts, nodes: Sequence[str]) -> tuple[str, ...]:
    """A sentence where several nodes were asked and traffic with some of them was never seen to
    pass, nor to fail.
    """
    told = {fact.host for fact in facts.of(CheckProgram)}
    if len(nodes) < 2 or len(told) < 2:
        return ()
    tries = [one for one in facts.of(PairTry) if one.outcome != "not_measured"]
    if not tries:
        plan = facts.one(ReadyPlan) or ReadyPlan()
        why = dict(plan.undone).get(CHECK) or next(
            (refusal.reason for refusal in facts.refused("pair")), "nothing was tried"
        )
        return (f"the traffic between the nodes: {why}",)
    seen = {name for one in tries for name in one.members}
    missed = [name for name in nodes if name in told and name not in seen]
    rows = (
        (f"the traffic of {folded(missed)} with the other nodes was not tried",) if missed else ()
    )
    return (*rows, *_left_open(facts, tries))


def _left_open(facts: Facts, tries: Sequence[PairTry]) -> tuple[str, ...]:
    """Tries that failed, were not made again, and of which nothing was concluded: what failed
    once is no pass.
    """
    blamed = {node.host for node in facts.of(BadNode)} | {
        end for link in facts.of(BadLink) for end in (link.a, link.b)
    }
    blamed |= {name for common in facts.of(CommonFault) for name in common.hosts} | {
        name for scale in facts.of(ScaleFault) for name in scale.members
    }
    latest = {frozenset(one.members): one for one in tries}
    failed = [
        one for one in latest.values() if one.outcome != "passed" and not blamed & set(one.members)
    ]
    return tuple(
        f"the traffic between {folded(one.members)} failed and was not tried again: {one.says}"
        for one in failed
    )


def pair_rows(facts: Facts, nodes: Sequence[str]) -> list[dict[str, Any]]:
    """The traffic between nodes as rows of the report's checks."""
    rows = [_row("fail", (one.host,), one.says, one.how) for one in facts.of(BadNode)]
    rows += [_row("fail", (link.a, link.b), link.says, link.how) for link in facts.of(BadLink)]
    rows += [_row("fail", one.members, one.says, "failed") for one in facts.of(ScaleFault)]
    rows += [_row("fail", one.hosts, one.says, one.how) for one in facts.of(CommonFault)]
    tries = [one for one in facts.of(PairTry) if one.outcome != "not_measured"]
    if rows:
        return rows
    if tries:
        passed = list(dict.fromkeys(name for one in tries for name in one.members))
        return [
            _row(
                "ok",
                passed,
                f"{len(passed)} nodes reached each other in {len(tries)}"
                f" {'try' if len(tries) == 1 else 'tries'}.",
                "",
            )
        ]
    return [_row("unknown", nodes, says, "") for says in untried(facts, nodes)]


def isolation_told(facts: Facts) -> dict[str, Any]:
    """What the search among pairs of nodes found, in plain data; empty where there was none."""
    tries = facts.of(PairTry)
    done = facts.one(PairsDone)
    if not tries and done is None:
        return {}
    return {
        "tries": len(tries),
        "rounds": len({one.round for one in tries}),
        "arms": list(dict.fromkeys(one.arm for one in tries)),
        "bad_nodes": [
            {
                "host": one.host,
                "how": one.how,
                "says": one.says,
                "arm": one.arm,
                "certain": one.certain,
            }
            for one in facts.of(BadNode)
        ],
        "bad_links": [
            {
                "a": one.a,
                "b": one.b,
                "direction": one.direction,
                "how": one.how,
                "says": one.says,
                "arm": one.arm,
                "certain": one.certain,
            }
            for one in facts.of(BadLink)
        ],
        "only_at_scale": [
            {"size": one.size, "members": list(one.members), "says": one.says}
            for one in facts.of(ScaleFault)
        ],
        "common": [
            {"hosts": list(one.hosts), "how": one.how, "says": one.says}
            for one in facts.of(CommonFault)
        ],
        "left": list(done.left) if done is not None else [],
    }


def _group(
    hosts: Iterable[str],
    says: str,
    how: str,
    evidence: tuple[str, ...],
    links: tuple[tuple[str, str], ...] = (),
) -> SuspectGroup:
    kind: SuspectHow = (
        "slow"
        if how in _DEGRADED
        else "not-visible"
        if how in ("silent", "unreachable")
        else "failed-first"
    )
    return SuspectGroup(
        CELL,
        "ready",
        (),
        kind,
        says,
        "check",
        evidence=evidence,
        hosts=tuple(hosts),
        unready=(PAIR,),
        links=links,
    )


def _row(state: str, hosts: Iterable[str], says: str, how: str) -> dict[str, Any]:
    severity = "degraded" if how in _DEGRADED else "blocker"
    told = {
        "id": CHECK,
        "state": state,
        "severity": severity,
        "who": "admin",
        "hosts": list(dict.fromkeys(hosts)),
        "says": says,
        "value": how,
    }
    return {
        **told,
        "fix": "",
        "threshold": "every node reaches its partners, as fast as the others do",
        "source": "each suspect is tried again with known-good partners",
    }
