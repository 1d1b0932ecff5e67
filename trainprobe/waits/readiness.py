"""What keeps a job from starting well on these nodes: failed checks, values that differ, nodes
without an answer, as groups of suspects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from trainprobe.checks import spec_of
from trainprobe.facts import (
    CheckProgram,
    Difference,
    DroppedCheck,
    Facts,
    HostCheck,
    Interrupted,
    NodeValues,
    ReadyPlan,
    Rung,
    SilentNode,
)
from trainprobe.facts.node_checks import CELL
from trainprobe.model.diagnosis import Verdict
from trainprobe.model.node_names import folded
from trainprobe.waits.readiness_pairs import pair_groups, untried
from trainprobe.waits.suspects import SuspectGroup

PROBE = "ready"
SILENT = "node.look"
BAD = ("blocker", "degraded")
# What shows itself in traffic between nodes too: then the traffic is no trouble of its own.
_EXPLAINS_TRAFFIC = (
    "net.",
    "host.dns",
    "host.skew",
    "ib.",
    "plan.",
    "same.net",
    "same.rdma",
    SILENT,
)
_LAST_STAGE = 50
# measured: four ranks on four nodes of two shared cores import torch and meet in 14 to 20 s; what
# had less time may have needed more
LEAST_RUNG_S = 20.0


def is_readiness(facts: Facts) -> bool:
    """Was it `ready` that gathered?"""
    return facts.one(ReadyPlan) is not None


def nodes_of(facts: Facts) -> tuple[str, ...]:
    """All nodes that were asked, by the site's names."""
    plan = facts.one(ReadyPlan)
    seen = [fact.host for fact in facts.of(CheckProgram)]
    return tuple(dict.fromkeys((*(plan.nodes if plan else ()), *seen)))


def ready_groups(facts: Facts) -> tuple[SuspectGroup, ...]:
    """One group for each illness and the nodes that have it, what explains the most first; none
    where `ready` did not gather.
    """
    if not is_readiness(facts):
        return ()
    groups = [*_silent(facts), *_checks(facts)]
    for group in _differences(facts):
        groups = _merged(
            groups,
            group,
            lambda known, new: (
                set(new.hosts) <= set(known.hosts) and _family(known) == _family(new)
            ),
        )
    for group in pair_groups(facts):
        groups = _merged(
            groups, group, lambda known, new: _accounts_for(known, new, nodes_of(facts))
        )
    return tuple(sorted(groups, key=_stage))


def ready_verdict(facts: Facts, groups: Sequence[SuspectGroup]) -> Verdict:
    """At risk where something keeps the job from starting well; undetermined where something
    that could was not measured.
    """
    if groups:
        return "at-risk"
    return "undetermined" if facts.one(Interrupted) is not None or doubts_of(facts) else "healthy"


def cut_short(facts: Facts) -> tuple[Rung, ...]:
    """The rungs over several nodes that the budget ended before they had the time which such a
    rung takes: no answer, and no hang.
    """
    return tuple(
        rung
        for rung in facts.of(Rung)
        if rung.outcome == "timed_out" and len(rung.hosts) > 1 and rung.deadline_s < LEAST_RUNG_S
    )


def of_rungs(facts: Facts, groups: Sequence[SuspectGroup]) -> list[SuspectGroup]:
    """Of the groups of the rungs those that `ready` may conclude from."""
    short = {rung.cell for rung in cut_short(facts)}
    return [group for group in groups if group.cell not in short]


def doubts_of(facts: Facts) -> tuple[str, ...]:
    """What was not measured though a failure of it would be a blocker, a sentence each. Not
    measured is not healthy.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for check in facts.of(HostCheck):
        if check.status == "unknown" and check.severity == "blocker" and check.host:
            found[f"{check.name}: {check.says or 'no reason was given'}"].append(check.host)
    for dropped in facts.of(DroppedCheck):
        spec = spec_of(dropped.name)
        if dropped.hung and spec is not None and spec.severity == "blocker":
            found[f"{dropped.name}: {dropped.reason}"].append(dropped.host)
    for program in facts.of(CheckProgram):
        if program.outcome in ("timed_out", "crashed", "unavailable") and not any(
            one.host == program.host for one in facts.of(DroppedCheck)
        ):
            found[f"{program.name}: {program.reason}"].append(program.host)
    rows = [f"{_at(hosts, facts)}{says}" for says, hosts in found.items()]
    rows += [
        f"{rung.probe}: ranks across {len(rung.hosts)} nodes had not met when the time was over,"
        f" {rung.deadline_s:.0f} s after their start"
        for rung in cut_short(facts)
    ]
    told = {fact.host for fact in facts.of(CheckProgram)}
    plan = facts.one(ReadyPlan)
    rows += [plan.unseen] if plan is not None and plan.unseen else []
    rows += [
        node.says
        for node in facts.of(SilentNode)
        if not (node.late or node.unstarted) or node.host not in told
    ]
    rows += [
        f"{node}: no check has spoken"
        for node in nodes_of(facts)
        if node not in told and not any(one.host == node for one in facts.of(SilentNode))
    ]
    if not told:
        rows.append("no node has told anything")
    return tuple(dict.fromkeys((*rows, *untried(facts, nodes_of(facts)))))


def where_says(hosts: Sequence[str], facts: Facts) -> str:
    """`node[1-3]`; empty where only this one host was asked."""
    return folded(hosts) if len(nodes_of(facts)) > 1 and hosts else ""


def _at(hosts: Sequence[str], facts: Facts) -> str:
    where = where_says(hosts, facts)
    return f"{where}: " if where else ""


def _silent(facts: Facts) -> Iterable[SuspectGroup]:
    """A node that gives no answer is at fault where others answer: where none does it may be the
    way to them.
    """
    late = [
        node for node in facts.of(SilentNode) if (node.late or node.unstarted) and node.cell == CELL
    ]
    if not any(fact.host not in {node.host for node in late} for fact in facts.of(CheckProgram)):
        return
    for node in late:
        yield SuspectGroup(
            CELL,
            PROBE,
            (),
            "not-visible",
            node.says,
            "check",
            evidence=node.evidence,
            hosts=(node.host,),
            unready=(SILENT,),
        )


def _checks(facts: Facts) -> list[SuspectGroup]:
    failed: dict[str, list[HostCheck]] = defaultdict(list)
    for check in facts.of(HostCheck):
        if check.bad and check.host:
            failed[check.name].append(check)
    grouped: dict[tuple[str, tuple[str, ...]], list[HostCheck]] = defaultdict(list)
    for name, checks in failed.items():
        grouped[_illness(name), tuple(dict.fromkeys(check.host for check in checks))] += checks
    return [_group(facts, hosts, checks) for (_, hosts), checks in grouped.items()]


def _group(facts: Facts, hosts: tuple[str, ...], checks: Sequence[HostCheck]) -> SuspectGroup:
    names = tuple(dict.fromkeys(check.name for check in checks))
    first = min(checks, key=lambda check: check.severity != "blocker")
    more = [name for name in names if name != first.name]
    says = f"{_at(hosts, facts)}{first.says.rstrip('.') or f'{first.name} fails'}" + (
        f"; so do {', '.join(more)}" if more else ""
    )
    evidence = tuple(dict.fromkeys(id_ for check in checks for id_ in check.evidence))
    return SuspectGroup(
        CELL,
        PROBE,
        (),
        "failed-first",
        says,
        "check",
        evidence=evidence,
        hosts=hosts,
        unready=names,
    )


def _illness(check: str) -> str:
    """What the catalogue calls it, so that several checks of one illness are one trouble; else
    the check's first word.
    """
    return str(getattr(spec_of(check), "illness", "")) or check.partition(".")[0]


def _differences(facts: Facts) -> Iterable[SuspectGroup]:
    grouped: dict[tuple[str, tuple[str, ...], bool], list[Difference]] = defaultdict(list)
    for one in facts.of(Difference):
        if one.severity in BAD:
            grouped[one.check, one.hosts, one.tie].append(one)
    for (_, hosts, tie), found in grouped.items():
        names = tuple(f"same.{one.name}" for one in found)
        evidence = tuple(dict.fromkeys(id_ for one in found for id_ in one.evidence))
        more = f"; and {len(found) - 1} more" if len(found) > 1 else ""
        says = (
            camps_say(found[0])
            if tie
            else (
                f"{folded(hosts)} {'has' if len(hosts) == 1 else 'have'}"
                f" {difference_says(found[0])}"
            )
        )
        yield SuspectGroup(
            CELL,
            PROBE,
            (),
            "failed-first",
            says + more,
            "check",
            evidence=evidence,
            hosts=hosts,
            unready=names,
        )


def difference_says(one: Difference) -> str:
    """`version.torch 2.9.0 where node[1-3] have 2.13.0`."""
    return (
        f"{one.name} {_short(one.value)} where {folded(one.majority_hosts)}"
        f" {'has' if len(one.majority_hosts) == 1 else 'have'} {_short(one.majority)}"
    )


def camps_say(one: Difference) -> str:
    """`version.torch is 2.9.0 on node[1-2] and 2.13.0 on node[3-4]`."""
    return (
        f"{one.name} is"
        f" {' and '.join(f'{_short(value)} on {folded(hosts)}' for value, hosts in one.camps)}"
    )


def _short(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:39]}…"


def _merged(
    groups: list[SuspectGroup],
    new: SuspectGroup,
    belongs: Callable[[SuspectGroup, SuspectGroup], bool],
) -> list[SuspectGroup]:
    for place, known in enumerate(groups):
        if belongs(known, new):
            one = replace(
                known,
                unready=(*known.unready, *new.unready),
                links=known.links or new.links,
                evidence=tuple(dict.fromkeys((*known.evidence, *new.evidence))),
            )
            return [*groups[:place], one, *groups[place + 1 :]]
    return [*groups, new]


def _family(group: SuspectGroup) -> str:
    """Of `lim.memlock` and of a difference in `limit.memlock` both `lim`."""
    first = group.unready[0] if group.unready else ""
    if first.startswith("same."):
        from trainprobe.facts.differences import check_of

        first = check_of(first.removeprefix("same."))
    return first.partition(".")[0]


def _accounts_for(known: SuspectGroup, traffic: SuspectGroup, nodes: Sequence[str]) -> bool:
    """Is this traffic what a known trouble shows itself in? What all nodes share does not tell
    why one of them fails, nor one node's trouble why all do.
    """
    if not any(name.startswith(_EXPLAINS_TRAFFIC) for name in known.unready):
        return False
    ill, failing = set(known.hosts), set(traffic.hosts)
    if len(failing) > 1 and not traffic.links:
        return failing <= ill
    return bool(ill & failing) and (ill < set(nodes) or ill <= failing)


def _stage(group: SuspectGroup) -> tuple[int, int, str]:
    """Nodes without an answer, then checks by their stage, then differences, then traffic."""
    first = group.unready[0] if group.unready else ""
    spec = spec_of(first)
    kind = 0 if first == SILENT else 3 if first == "pair" else 2 if first.startswith("same.") else 1
    return kind, spec.stage if spec is not None else _LAST_STAGE, first


def compared(facts: Facts) -> bool:
    """Have at least two nodes told values?"""
    return len({fact.host for fact in facts.of(NodeValues)}) > 1
