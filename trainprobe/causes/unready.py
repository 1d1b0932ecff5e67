"""Causes that readiness shows: failed checks of nodes, values that nodes do not share, traffic between nodes that fails.

A cause that `readied` wraps speaks in a group of `ready` by these signs alone, and everywhere else as it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Difference, Facts, HostCheck, ReadyPlan, SilentNode
from trainprobe.facts.pairs import BadLink, BadNode, CommonFault, ScaleFault
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.model.facts import Fact
from trainprobe.model.node_names import folded
from trainprobe.waits import SuspectGroup
from trainprobe.waits.readiness_pairs import PAIR, surely_at_fault

GENERAL = "environment-differs"
SILENT = "node.look"
MOST_SHOWN = 4
Traffic = BadNode | BadLink | CommonFault | ScaleFault


@dataclass(frozen=True)
class Signs:
    """What shows one illness of a node or link.

    `checks` are ids of the catalogue, `values` names that all nodes must share; one that ends in a dot stands for all that begin so, `but`
    these. `hows` are the ways in which traffic fails (isolation), `silence` is a node without an answer. `says` is the illness as a predicate, of one node and of several.
    `admin` is for who runs the nodes.
    """

    says: tuple[str, str]
    checks: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    hows: tuple[str, ...] = ()
    silence: bool = False
    admin: tuple[str, ...] = ()


def readied(cause: Cause, signs: Signs) -> Cause:
    """The same cause that also speaks of what `ready` found."""

    def weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
        yield from weigh_signs(facts, group, signs) if group.unready else cause.weigh(facts, group)

    def summary(facts: Facts, group: SuspectGroup) -> str:
        return _summary(facts, group, signs) if group.unready else cause.summary(facts, group)

    def fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
        return _fixes(facts, group, signs) if group.unready else cause.fixes(facts, group)

    def ranks(facts: Facts, group: SuspectGroup) -> tuple[int, ...]:
        return () if group.unready else cause.ranks(facts, group)

    modes = cause.modes if "check" in cause.modes else (*cause.modes, "check")
    brings = (*cause.accounts_for, GENERAL) if signs.values and cause.id != GENERAL else cause.accounts_for
    return replace(cause, weigh=weigh, summary=summary, fixes=fixes, ranks=ranks, modes=modes, accounts_for=brings)


def unready_cause(cause_id: str, signs: Signs, *, title: str, means: str, telling: str, would_settle: str, accounts_for: tuple[str, ...] = ()) -> Cause:
    """A cause that nothing but readiness shows."""
    silent = Cause(
        id=cause_id,
        title=title,
        means=means,
        telling=telling,
        modes=("check",),
        weigh=lambda facts, group: iter(()),  # noqa: ARG005 - the names are those of a cause's weighing
        summary=lambda facts, group: "",  # noqa: ARG005
        fixes=lambda facts, group: (),  # noqa: ARG005
        ranks=nobody,
        would_settle=would_settle,
        accounts_for=accounts_for,
    )
    return readied(silent, signs)


def weigh_signs(facts: Facts, group: SuspectGroup, signs: Signs) -> Iterator[Weighing]:
    """A check that failed on the node itself settles it; a value unlike the others' and traffic that fails name it where nothing settles it."""
    for check in failing(facts, group, signs.checks)[:1]:
        hosts = _hosts_of(failing(facts, group, (check.name,)))
        yield weighing(26, "probe-outcome", f"{folded(hosts)}: {short(check.says)}".rstrip("."), *failing(facts, group, (check.name,))[:MOST_SHOWN])
    for one in unlike(facts, group, signs)[:MOST_SHOWN]:
        yield weighing(13, "environment-and-limits", difference_says(one), one)
    for told in traffic(facts, group, signs.hows)[:MOST_SHOWN]:  # how it fails was measured, even where it is open which end is at fault
        yield weighing(13, "network", short(told.says, 300).rstrip("."), told, ids=told.tries[:MOST_SHOWN])
    if signs.silence and SILENT in group.unready:
        silent = [one for one in facts.of(SilentNode) if one.host in group.hosts and (one.late or one.unstarted)]
        if silent:
            yield weighing(26, "network", "; ".join(short(one.says) for one in silent[:MOST_SHOWN]).rstrip("."), *silent)


def failing(facts: Facts, group: SuspectGroup, names: Sequence[str]) -> list[HostCheck]:
    """The failed checks of this group with these names, blockers first."""
    found = [fact for fact in facts.of(HostCheck) if fact.bad and fact.host in group.hosts and fact.name in group.unready and _meant(fact.name, names)]
    return sorted(found, key=lambda fact: fact.severity != "blocker")


def unlike(facts: Facts, group: SuspectGroup, signs: Signs) -> list[Difference]:
    """The values of this group's nodes that the others do not share."""
    found = [fact for fact in facts.of(Difference) if f"same.{fact.name}" in group.unready and set(fact.hosts) <= set(group.hosts)]
    return [fact for fact in found if _meant(fact.name, signs.values) and not _meant(fact.name, signs.but)]


def traffic(facts: Facts, group: SuspectGroup, hows: Sequence[str]) -> list[Traffic]:
    """What the search among pairs of nodes concluded of this group's nodes and links, as far as it failed in one of these ways."""
    if "pair" not in group.unready:
        return []
    hosts = set(group.hosts)
    found: list[Traffic] = [fact for fact in facts.of(BadNode) if fact.host in hosts and fact.how in hows]
    found += [fact for fact in facts.of(BadLink) if {fact.a, fact.b} <= hosts and fact.how in hows]
    found += [fact for fact in facts.of(CommonFault) if fact.how in hows and hosts & set(fact.hosts)]
    if "scale" in hows:
        found += [fact for fact in facts.of(ScaleFault) if not fact.members or hosts & set(fact.members)]
    return found


def difference_says(one: Difference) -> str:
    """`version.torch is 2.9.1 on node3 and 2.13.0 on node[1-2,4]`."""
    if one.tie:
        return f"{one.name} is {' and '.join(f'{short(value, 60)} on {folded(hosts)}' for value, hosts in one.camps)}"
    return f"{one.name} is {short(one.value, 60)} on {folded(one.hosts)} and {short(one.majority, 60)} on {folded(one.majority_hosts)}"


def _meant(name: str, names: Sequence[str]) -> bool:
    return any(name == one or name.startswith((f"{one}:", f"{one}/")) or (one.endswith((".", "_")) and name.startswith(one)) for one in names)


def _hosts_of(found: Sequence[HostCheck]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fact.host for fact in found))


def _summary(facts: Facts, group: SuspectGroup, signs: Signs) -> str:
    """`node3 has too little shared memory: /dev/shm: 8 MiB … (node[1-2,4]: /dev/shm: 1.0 GiB …)`."""
    return sentence(
        f"{'The batch script' if _of_a_script(facts) else _who(group)} {signs.says[len(group.hosts) > 1 or bool(group.links)]}: {_details(facts, group, signs)}"
    )


def _of_a_script(facts: Facts) -> bool:
    """Was it a batch script that was checked, before there are any nodes?"""
    plan = facts.one(ReadyPlan)
    return plan is not None and plan.by == "sbatch"


def _who(group: SuspectGroup) -> str:
    if group.links:
        return " and ".join(f"{a} and {b}" for a, b in group.links[:1])
    return folded(group.hosts) if group.hosts else "This node"


def _details(facts: Facts, group: SuspectGroup, signs: Signs) -> str:
    failed = failing(facts, group, signs.checks)
    if failed:
        well = [fact for fact in facts.of(HostCheck) if fact.name == failed[0].name and fact.status == "ok" and fact.host and fact.host not in group.hosts]
        others = f" ({folded(_hosts_of(well))}: {short(well[0].says, 120).rstrip('.')})" if well else ""
        return short(failed[0].says, 240).rstrip(".") + others
    found: list[str] = [difference_says(one) for one in unlike(facts, group, signs)[:2]]
    found += [short(one.says, 300).rstrip(".") for one in traffic(facts, group, signs.hows)[:1]]
    found += [short(one.says, 200).rstrip(".") for one in facts.of(SilentNode) if one.host in group.hosts][:1] if signs.silence else []
    return "; ".join(found) or short(group.says, 240).rstrip(".")


def _fixes(facts: Facts, group: SuspectGroup, signs: Signs) -> tuple[Fix, ...]:
    """First what the checks themselves advise, then how to start without these nodes, then what an administrator can do."""
    scene = Scene(facts, group)
    told: list[HostCheck | Difference] = [*failing(facts, group, signs.checks), *unlike(facts, group, signs)]
    found: list[Fix] = []
    for who in ("user", "admin"):
        steps = tuple(dict.fromkeys(one.fix for one in told if one.fix and (one.who or "user") == who))
        if steps:
            where = "in the batch script" if _of_a_script(facts) else f"on {folded(group.hosts)}"
            found.append(fix(scene, f"Put it right {where}", *steps, risk="needs-admin" if who == "admin" else "safe", who=who))
    plan = facts.one(ReadyPlan)
    out = _left_out(facts, group, plan)
    if plan is not None and out and set(out) < set(plan.nodes):
        found.append(fix(scene, "Start without it", f"sbatch --exclude={folded(out)} ...   (or srun, salloc)"))
    if signs.admin:  # the command that drains them stands once in the report, for all causes together
        found.append(fix(scene, "Have it mended", *signs.admin, risk="needs-admin", who="admin"))
    return tuple(found) or (fix(scene, "Look closer", "trainprobe ready --standard"),)


def _left_out(facts: Facts, group: SuspectGroup, plan: ReadyPlan | None) -> tuple[str, ...]:
    """The group's nodes; of a link one end is enough, the same that the report leaves out: the later one of the plan.

    None where only traffic accuses them and they were not tried with enough good partners: a healthy node is not taken out for its partner.
    """
    if group.unready == (PAIR,) and not set(group.hosts) <= surely_at_fault(facts):
        return ()
    if not group.links or plan is None:
        return group.hosts
    return (max(group.links[0], key=lambda end: plan.nodes.index(end) if end in plan.nodes else 0),)


def steps_of(facts: Facts, group: SuspectGroup) -> tuple[str, ...]:
    """What the failed checks of a group advise, whatever its cause is."""
    found: list[Fact] = [fact for fact in facts.of(HostCheck) if fact.bad and fact.host in group.hosts and fact.name in group.unready]
    found += [fact for fact in facts.of(Difference) if f"same.{fact.name}" in group.unready]
    return tuple(dict.fromkeys(one.fix for one in found if isinstance(one, (HostCheck, Difference)) and one.fix))
