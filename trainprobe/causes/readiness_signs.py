"""Causes that readiness shows: failed checks of nodes, values that nodes do not share, traffic
between nodes that fails.

A cause with readiness signs is weighed by them alone in a group of `ready`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.phrases import Fixes, admin_fix, fix, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import Difference, Facts, HostCheck, ReadyPlan, SilentNode
from trainprobe.facts.pairs import BadLink, BadNode, CommonFault, ScaleFault
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.model.facts import Fact
from trainprobe.model.node_names import folded
from trainprobe.waits import SuspectGroup
from trainprobe.waits.leaving_nodes_out import start_without
from trainprobe.waits.readiness_pairs import PAIR, surely_at_fault

GENERAL = "environment-differs"
SILENT = "node.look"
MOST_SHOWN = 4
LIKELY = 13
Traffic = BadNode | BadLink | CommonFault | ScaleFault


def readied(cause: Cause) -> Cause:
    """The same cause, which in a group of `ready` goes by its readiness signs alone."""
    signs = cause.ready
    if signs is None:
        return cause

    def weigh(scene: Scene) -> Iterable[Weighing]:
        return weigh_signs(scene, signs) if scene.group.unready else cause.weigh(scene)

    def summary(scene: Scene) -> str:
        return _summary(scene, signs) if scene.group.unready else cause.summary(scene)

    def fixes(scene: Scene) -> Fixes:
        return _fixes(scene, signs) if scene.group.unready else cause.fixes_for(scene)

    def ranks(scene: Scene) -> tuple[int, ...]:
        return () if scene.group.unready else cause.ranks(scene)

    general = (GENERAL,) if signs.values and cause.id != GENERAL else ()
    return replace(
        cause,
        weigh=weigh,
        summary=summary,
        fixes=fixes,
        ranks=ranks,
        modes=cause.modes if "check" in cause.modes else (*cause.modes, "check"),
        accounts_for=(*cause.accounts_for, *general),
    )


def weigh_signs(scene: Scene, signs: ReadySigns) -> Weighings:
    """A failed check that is sure settles it; the others, differing values and failing traffic only
    name it.
    """
    for check in failing(scene, signs.checks)[:1]:
        hosts = _hosts_of(failing(scene, (check.name,)))
        yield weighing(
            26 if check.sure else LIKELY,
            "probe-outcome",
            f"{folded(hosts)}: {short(check.says)}".rstrip("."),
            *failing(scene, (check.name,))[:MOST_SHOWN],
        )
    for one in unlike(scene, signs)[:MOST_SHOWN]:
        yield weighing(13, "environment-and-limits", difference_says(one), one)
    for reported in traffic(scene, signs.hows)[
        :MOST_SHOWN
    ]:  # how it fails was measured, even where it is open which end is at fault
        yield weighing(
            13,
            "network",
            short(reported.says, 300).rstrip("."),
            reported,
            ids=reported.tries[:MOST_SHOWN],
        )
    if signs.silence and SILENT in scene.group.unready:
        silent = [
            one
            for one in scene.facts.of(SilentNode)
            if one.host in scene.group.hosts and (one.late or one.unstarted)
        ]
        if silent:
            yield weighing(
                26,
                "network",
                "; ".join(short(one.says) for one in silent[:MOST_SHOWN]).rstrip("."),
                *silent,
            )


def failing(scene: Scene, names: Sequence[str]) -> list[HostCheck]:
    """The failed checks of this group with these names, blockers first."""
    found = [
        fact
        for fact in scene.facts.of(HostCheck)
        if fact.bad
        and fact.host in scene.group.hosts
        and fact.name in scene.group.unready
        and _meant(fact.name, names)
    ]
    return sorted(found, key=lambda fact: (not fact.sure, fact.severity != "blocker"))


def unlike(scene: Scene, signs: ReadySigns) -> list[Difference]:
    """The values of this group's nodes that the others do not share."""
    found = [
        fact
        for fact in scene.facts.of(Difference)
        if f"same.{fact.name}" in scene.group.unready and set(fact.hosts) <= set(scene.group.hosts)
    ]
    return [
        fact
        for fact in found
        if _meant(fact.name, signs.values) and not _meant(fact.name, signs.but)
    ]


def traffic(scene: Scene, hows: Sequence[str]) -> list[Traffic]:
    """Conclusions about this group's nodes and links that failed in one of these ways."""
    if "pair" not in scene.group.unready:
        return []
    hosts = set(scene.group.hosts)
    found: list[Traffic] = [
        fact for fact in scene.facts.of(BadNode) if fact.host in hosts and fact.how in hows
    ]
    found += [
        fact for fact in scene.facts.of(BadLink) if {fact.a, fact.b} <= hosts and fact.how in hows
    ]
    found += [
        fact for fact in scene.facts.of(CommonFault) if fact.how in hows and hosts & set(fact.hosts)
    ]
    if "scale" in hows:
        found += [
            fact
            for fact in scene.facts.of(ScaleFault)
            if not fact.members or hosts & set(fact.members)
        ]
    return found


def difference_says(one: Difference) -> str:
    """`version.torch is 2.9.1 on node3 and 2.13.0 on node[1-2,4]`."""
    if one.tie:
        return (
            f"{one.name} is"
            f" {' and '.join(f'{short(value, 60)} on {folded(hosts)}' for value, hosts in one.camps)}"  # noqa: E501
        )
    return (
        f"{one.name} is {short(one.value, 60)} on {folded(one.hosts)} and {short(one.majority, 60)}"
        f" on {folded(one.majority_hosts)}"
    )


def _meant(name: str, names: Sequence[str]) -> bool:
    return any(
        name == one
        or name.startswith((f"{one}:", f"{one}/"))
        or (one.endswith((".", "_")) and name.startswith(one))
        for one in names
    )


def _hosts_of(found: Sequence[HostCheck]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fact.host for fact in found))


def _summary(scene: Scene, signs: ReadySigns) -> str:
    """`node3 has too little shared memory: 8 MiB … (node[1-2,4]: 1.0 GiB …)`."""
    group = scene.group
    who = "The batch script" if _of_a_script(scene.facts) else _who(group)
    fault = signs.says[len(group.hosts) > 1 or bool(group.links)]
    return f"{who} {fault}: {_details(scene, signs)}"


def _of_a_script(facts: Facts) -> bool:
    """Was it a batch script that was checked, before there are any nodes?"""
    plan = facts.one(ReadyPlan)
    return plan is not None and plan.by == "sbatch"


def _who(group: SuspectGroup) -> str:
    if group.links:
        return " and ".join(f"{a} and {b}" for a, b in group.links[:1])
    return folded(group.hosts) if group.hosts else "This node"


def _details(scene: Scene, signs: ReadySigns) -> str:
    failed = failing(scene, signs.checks)
    if failed:
        well = [
            fact
            for fact in scene.facts.of(HostCheck)
            if fact.name == failed[0].name
            and fact.status == "ok"
            and fact.host
            and fact.host not in scene.group.hosts
        ]
        others = (
            f" ({folded(_hosts_of(well))}: {short(well[0].says, 120).rstrip('.')})" if well else ""
        )
        return short(failed[0].says, 240).rstrip(".") + others
    found: list[str] = [difference_says(one) for one in unlike(scene, signs)[:2]]
    found += [short(one.says, 300).rstrip(".") for one in traffic(scene, signs.hows)[:1]]
    found += (
        [
            short(one.says, 200).rstrip(".")
            for one in scene.facts.of(SilentNode)
            if one.host in scene.group.hosts
        ][:1]
        if signs.silence
        else []
    )
    return "; ".join(found) or short(scene.group.says, 240).rstrip(".")


def _fixes(scene: Scene, signs: ReadySigns) -> Fixes:
    """The checks' own advice, then a start without these nodes, then the administrator's steps."""
    reported: list[HostCheck | Difference] = [*failing(scene, signs.checks), *unlike(scene, signs)]
    found: list[Fix] = []
    for who in ("user", "admin"):
        steps = tuple(
            dict.fromkeys(one.fix for one in reported if one.fix and (one.who or "user") == who)
        )
        if steps:
            where = (
                "in the batch script"
                if _of_a_script(scene.facts)
                else f"on {folded(scene.group.hosts)}"
            )
            found.append((admin_fix if who == "admin" else fix)(f"Correct it {where}", *steps))
    plan = scene.facts.one(ReadyPlan)
    out = _left_out(scene, plan)
    if plan is not None and out and set(out) < set(plan.nodes):
        found.append(fix("Start without it", start_without(plan.scheduler, out)))
    # the command that drains them stands once in the report, for all causes together
    if signs.admin:
        found.append(admin_fix("Have it mended", *signs.admin))
    return tuple(found) or (fix("Look closer", "trainprobe ready --standard"),)


def _left_out(scene: Scene, plan: ReadyPlan | None) -> tuple[str, ...]:
    """The group's nodes; of a link one end is enough, the same that the report leaves out: the
    later one of the plan.

    None where only traffic accuses them and they were not tried with enough good partners: a
    healthy node is not taken out for its partner.
    """
    if scene.group.unready == (PAIR,) and not set(scene.group.hosts) <= surely_at_fault(
        scene.facts
    ):
        return ()
    if not scene.group.links or plan is None:
        return scene.group.hosts
    return (
        max(
            scene.group.links[0], key=lambda end: plan.nodes.index(end) if end in plan.nodes else 0
        ),
    )


def steps_of(scene: Scene) -> tuple[str, ...]:
    """What the failed checks of a group advise, whatever its cause is."""
    found: list[Fact] = [
        fact
        for fact in scene.facts.of(HostCheck)
        if fact.bad and fact.host in scene.group.hosts and fact.name in scene.group.unready
    ]
    found += [
        fact for fact in scene.facts.of(Difference) if f"same.{fact.name}" in scene.group.unready
    ]
    return tuple(
        dict.fromkeys(
            one.fix for one in found if isinstance(one, (HostCheck, Difference)) and one.fix
        )
    )
