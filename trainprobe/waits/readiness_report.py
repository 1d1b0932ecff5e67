"""The readiness of a job in plain data: every check with its state, who must act, what differs,
what was left out, and whom to leave out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from trainprobe.checks import spec_of
from trainprobe.facts import (
    Difference,
    DroppedCheck,
    Facts,
    HostCheck,
    Interrupted,
    ReadyPlan,
    Rung,
)
from trainprobe.model.diagnosis import Notice, Verdict
from trainprobe.model.node_names import folded
from trainprobe.waits.groups import suspect_groups
from trainprobe.waits.ladder import where_ranks_stood
from trainprobe.waits.leaving_nodes_out import drain_command, exclude_option
from trainprobe.waits.readiness import (
    BAD,
    camps_say,
    compared,
    cut_short,
    difference_says,
    doubts_of,
    is_readiness,
    nodes_of,
    of_rungs,
    ready_groups,
    ready_verdict,
    where_says,
)
from trainprobe.waits.readiness_pairs import CHECK, PAIR, isolation_told, pair_rows, surely_at_fault
from trainprobe.waits.situation import Situation
from trainprobe.waits.suspects import SuspectGroup

_IN_WORDS = {PAIR: "its traffic fails", "node.look": "no answer"}
MOST_HOSTS_TOLD = 4096


def ready_situation(facts: Facts) -> Situation | None:
    """Whether the job may start; None where `ready` did not gather."""
    if not is_readiness(facts):
        return None
    groups = (*ready_groups(facts), *of_rungs(facts, suspect_groups(facts)))
    verdict = ready_verdict(facts, groups)
    says = ready_says(facts, verdict, groups)
    found = Situation("", verdict, conclusive=True, says=says, groups=groups)
    return replace(where_ranks_stood(facts, found), open=doubts_of(facts))


def readiness(facts: Facts, groups: Sequence[SuspectGroup], verdict: Verdict) -> dict[str, Any]:
    """The report's `readiness`: see docs/ready.md. `exclude` are the nodes without which the
    rest is ready, `shared` whether something is amiss that this does not heal.
    """
    plan = facts.one(ReadyPlan) or ReadyPlan()
    nodes = nodes_of(facts)
    interrupted = facts.one(Interrupted) is not None  # what was not looked at may be what matters
    exclude, shared = (
        ((), True) if interrupted else to_leave_out(groups, nodes, surely_at_fault(facts))
    )
    return {
        "ready": verdict == "healthy",
        "budget": plan.budget,
        "slot": plan.slot,
        "nodes": list(nodes),
        "checks": [*_check_rows(facts), *_difference_rows(facts), *pair_rows(facts, nodes)],
        "differences": [_difference(one) for one in facts.of(Difference)],
        "isolation": isolation_told(facts),
        "dropped": _dropped(facts, plan),
        "exclude": list(exclude),
        "exclude_line": exclude_option(plan.scheduler, exclude) if exclude else "",
        "drain": (
            [drain_command(plan.scheduler, exclude, _reason(groups, exclude))] if exclude else []
        ),
        "shared": shared,
    }


def to_leave_out(
    groups: Iterable[SuspectGroup], nodes: Sequence[str], sure: AbstractSet[str] = frozenset()
) -> tuple[tuple[str, ...], bool]:
    """Return the nodes without which the rest is ready, and whether some trouble would stay all the
    same.

    `sure` are the nodes whose traffic was seen to fail with good partners: for traffic no other
    node is left out. Of a link one end is enough: the one that is in most of the failing links.
    Leaving out every node is no help at all.
    """
    groups = tuple(groups)
    over = [
        group
        for group in groups
        if not group.unready and group.hosts != (group.cell.partition("@")[2],)
    ]  # ranks over several nodes tell no node apart
    groups = tuple(group for group in groups if group not in over)
    out: dict[str, None] = {}
    shared = False
    ends = Counter(end for group in groups for link in group.links for end in link)
    for group in sorted(
        groups, key=lambda group: bool(group.links)
    ):  # a node that goes anyway takes its links along
        if group.unready == (PAIR,) and not set(group.hosts) <= sure:
            shared = True  # one of them, or what is between them: whom to leave out is not known
        elif group.links and group.unready == (PAIR,):
            for a, b in group.links:
                if a not in out and b not in out:
                    out[
                        max(
                            (a, b),
                            key=lambda end: (ends[end], nodes.index(end) if end in nodes else 0),
                        )
                    ] = None
        elif group.hosts and set(group.hosts) < set(nodes):
            out.update(dict.fromkeys(group.hosts))
        else:
            shared = True
    shared = shared or (
        bool(over) and not out
    )  # where nodes are at fault, what hangs hangs for them
    if out and set(out) >= set(nodes):
        return (), True
    return tuple(node for node in nodes if node in out), shared


def ready_says(facts: Facts, verdict: Verdict, groups: Sequence[SuspectGroup]) -> str:
    """The headline: whether the job may start, and what is in its way."""
    nodes = nodes_of(facts)
    where = f"{len(nodes)} nodes" if len(nodes) > 1 else "this node"
    if groups:
        more = (
            f" {len(groups) - 1} more {'trouble' if len(groups) == 2 else 'troubles'} below."
            if len(groups) > 1
            else ""
        )
        return f"Not ready: {groups[0].says.rstrip('.')}.{more}"
    rows = [*_check_rows(facts), *_difference_rows(facts), *pair_rows(facts, nodes)]
    unknown = {
        row["id"] for row in rows if row["state"] == "unknown"
    }  # of little weight, or there were doubts
    passed = len({row["id"] for row in rows if row["state"] != "skip"} - unknown)
    if verdict == "healthy":
        warned = len(
            {
                (check.name, check.says)
                for check in facts.of(HostCheck)
                if check.host and _warns(check)
            }
        ) + len(_warned_differences(facts))
        untried = (
            "; ranks across them were not tried"
            if len(nodes) > 1 and not any(len(rung.hosts) > 1 for rung in facts.of(Rung))
            else ""
        )
        return (
            f"Ready: {passed} checks passed on {where}"
            + (f", {warned} with a warning" if warned else "")
            + (f"; {len(unknown)} not known" if unknown else "")
            + f"{untried}."
        )
    first = next(iter(doubts_of(facts)), "the run was interrupted").rstrip(".")
    return f"Not known whether {where} {'are' if len(nodes) > 1 else 'is'} ready: {first}."


def ready_notices(facts: Facts) -> tuple[Notice, ...]:
    """Warnings, each once with the nodes that have it."""
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for check in facts.of(HostCheck):
        if check.host and _warns(check):
            found[check.name, check.says, check.fix].append(check.host)
    rows = []
    for (name, says, fix), hosts in found.items():
        where = where_says(hosts, facts) if len(set(hosts)) < len(nodes_of(facts)) else ""
        rows.append(Notice(name, f"{where}: {says}" if where else says, fix, "checks"))
    rows += [
        Notice(
            one.check,
            f"{camps_say(one)}." if one.tie else f"{folded(one.hosts)}: {difference_says(one)}.",
            one.fix,
            "checks",
        )
        for one in _warned_differences(facts)
    ]
    return tuple(rows)


def _warns(check: HostCheck) -> bool:
    return check.severity != "info" and (
        check.status == "warn" or (check.status == "fail" and not check.bad)
    )


def _warned_differences(facts: Facts) -> list[Difference]:
    return [one for one in facts.of(Difference) if one.severity == "warning"]


def _check_rows(facts: Facts) -> list[dict[str, Any]]:
    """One row for each check, state and what it says; those that passed are one row whatever
    they say of each node.
    """
    rows: dict[tuple[str, str, str], list[HostCheck]] = defaultdict(list)
    for check in facts.of(HostCheck):
        if check.host:
            rows[
                check.name, check.status, "" if check.status in ("ok", "skip") else check.says
            ].append(check)
    return [_row(checks) for checks in rows.values()] + _hung_rows(facts)


def _row(checks: Sequence[HostCheck]) -> dict[str, Any]:
    first = checks[0]
    return {
        "id": first.name,
        "state": first.status,
        "severity": first.severity,
        "who": first.who,
        "hosts": _hosts([check.host for check in checks]),
        "says": first.says,
        "value": first.value,
        "fix": "" if first.status == "ok" else first.fix,
        "threshold": first.threshold,
        "source": first.source,
    }


def _hung_rows(facts: Facts) -> list[dict[str, Any]]:
    """Checks that a program did not come to, since it was ended before."""
    rows: dict[tuple[str, str], list[str]] = defaultdict(list)
    for dropped in facts.of(DroppedCheck):
        if dropped.hung:
            rows[dropped.name, dropped.reason].append(dropped.host)
    found = []
    for (name, reason), hosts in rows.items():
        spec = spec_of(name)
        known = (
            {
                "severity": spec.severity,
                "who": spec.who,
                "threshold": spec.threshold,
                "source": spec.source,
            }
            if spec
            else {"severity": "info", "who": "user"}
        )
        found.append(
            {
                "id": name,
                "state": "unknown",
                "hosts": _hosts(hosts),
                "says": reason,
                "value": "",
                "fix": "",
                "threshold": "",
                "source": "",
                **known,
            }
        )
    return found


def _difference_rows(facts: Facts) -> list[dict[str, Any]]:
    """The comparison as checks: one row for each kind of value that differs, and one for all
    that do not.
    """
    if not compared(facts):
        return []
    rows = []
    for one in facts.of(Difference):
        spec = spec_of(one.check)
        state = "fail" if one.severity in BAD else "warn" if one.severity == "warning" else "ok"
        says = camps_say(one) if one.tie else f"{folded(one.hosts)}: {difference_says(one)}"
        known = {
            "severity": one.severity,
            "who": one.who,
            "threshold": spec.threshold if spec else "the same on all nodes",
            "source": one.source,
        }
        rows.append(
            {
                "id": one.check,
                "state": state,
                **known,
                "hosts": _hosts(one.hosts),
                "says": f"{says}.",
                "value": one.value,
                "fix": one.fix,
            }
        )
    if not rows:
        says = (
            f"What {len(nodes_of(facts))} nodes told of versions, settings, limits and mounts is"
            " the same."
        )
        row = {
            "id": "nodes.same",
            "state": "ok",
            "severity": "degraded",
            "who": "admin",
            "hosts": _hosts(nodes_of(facts)),
            "says": says,
            "value": "",
        }
        rows.append({**row, "fix": "", "threshold": "the same on all nodes", "source": ""})
    return rows


def _difference(one: Difference) -> dict[str, Any]:
    camps = [{"value": value, "hosts": _hosts(hosts)} for value, hosts in one.camps]
    told = {
        "name": one.name,
        "check": one.check,
        "severity": one.severity,
        "value": "" if one.tie else one.value,
        "hosts": _hosts(one.hosts),
        "tie": one.tie,
    }
    return {
        **told,
        "majority": "" if one.tie else one.majority,
        "majority_hosts": _hosts(one.majority_hosts),
        "camps": camps,
    }


def _dropped(facts: Facts, plan: ReadyPlan) -> list[dict[str, Any]]:
    """What was not made: for want of time, by choice of the site, or as it belongs to a larger
    budget.
    """
    rows: dict[tuple[str, str], list[str]] = defaultdict(list)
    for dropped in facts.of(DroppedCheck):
        if not dropped.hung:
            rows[dropped.name, dropped.reason.removeprefix(f"{dropped.name} is left out: ")].append(
                dropped.host
            )
    told = [
        {"id": name, "reason": reason, "hosts": _hosts(hosts)}
        for (name, reason), hosts in rows.items()
    ]
    told += [
        {
            "id": rung.probe,
            "reason": f"the time was over {rung.deadline_s:.0f} s after its start",
            "hosts": list(rung.hosts),
        }
        for rung in cut_short(facts)
    ]
    return told + [
        {"id": name, "reason": reason, "hosts": []} for name, reason in plan.undone if name != CHECK
    ]


def _reason(groups: Iterable[SuspectGroup], exclude: Sequence[str]) -> str:
    out = set(exclude)
    names = dict.fromkeys(
        _IN_WORDS.get(name, name)
        for group in groups
        if set(group.hosts) <= out or (group.links and out & set(group.hosts))
        for name in group.unready
    )
    return ", ".join(list(names)[:4]) or "at fault"


def _hosts(hosts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(host for host in hosts if host))[:MOST_HOSTS_TOLD]
