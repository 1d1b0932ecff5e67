"""What is unlike on the nodes of one job: versions, environment, limits, mounts, adapters. A
minority is named, a tie is only told.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainprobe.checks import spec_of
from trainprobe.facts.host_checks import HostCheck
from trainprobe.facts.node_checks import CELL, NodeClock, NodeValues, ReadyPlan
from trainprobe.model.facts import Fact

UNSET = "none"
CLOCK, CLOCK_S = "host.skew", 1.0
# Amounts of which a node may have more than the others, and less by such a share. AzNHC allows 3 to
# 5 % of the memory, which the kernel keeps for itself; shared memory and limits have checks of
# their own that say what is too little, so that only far less than the others have is a fault of
# the node.
_AMOUNTS: Mapping[str, float] = {
    **dict.fromkeys(("memory_bytes", "memory.total_bytes", "memory.limit_bytes"), 0.05),
    **dict.fromkeys(("cpus", "cpu_quota"), 0.0),
    **dict.fromkeys(
        (
            "shm.size_bytes",
            "limit.nofile",
            "limit.memlock_bytes",
            "limit.nproc",
            "limit.as_bytes",
            "limit.stack_bytes",
            "pids.max",
        ),
        0.5,
    ),
}
# Lists in which the first counts, such as the interfaces that NCCL takes: it meets the others over
# the first; more or fewer behind that are only told.
_FIRST_COUNTS = frozenset({"net.interface"})
# Which check of the catalogue a name belongs to, by its first word; all else is of the host.
_FAMILIES: Mapping[str, str] = {
    "version": "py.same",
    "python": "py.same",
    "torch": "py.same",
    "module": "py.same",
    "env": "env.same",
    "nccl": "env.same",
    "limit": "lim.same",
    "cpu_quota": "lim.same",
    "net": "net.same",
    "rdma": "ib.same",
    "ib": "ib.same",
    "mount": "fs.same",
    "fs": "fs.same",
    "quota": "fs.same",
    "driver": "drv.same",
    "gpus_per_node": "drv.same",
    "writable": "fs.same",
    "cpus": "lim.same",
    "pids": "lim.same",
    "shm": "lim.same",
    **dict.fromkeys(
        ("thp", "clock", "cpu", "product", "sysctl", "numa", "boot", "modules"), "settings.same"
    ),
    "gpu": "drv.same",
    "cuda": "drv.same",
}
OTHERS = "host.same"
_LITTLE = 0.05


@dataclass(frozen=True)
class Difference(Fact):
    """A value that some nodes do not share with the rest: `hosts` have `value` (`none` for unset),
    and `majority_hosts`, more than half, `majority`.

    Where no value is that of more than half, `tie` is true: `camps` are all of them, each (value,
    hosts), and nobody is in the wrong. `check` is the row of the catalogue that says how much it
    matters.
    """

    name: str = ""
    value: str = ""
    hosts: tuple[str, ...] = ()
    majority: str = ""
    majority_hosts: tuple[str, ...] = ()
    tie: bool = False
    camps: tuple[tuple[str, tuple[str, ...]], ...] = ()
    check: str = ""
    severity: str = ""
    who: str = ""
    fix: str = ""
    source: str = ""


def join_differences(facts: list[Fact]) -> list[Fact]:
    """Compare what the nodes told, and their clocks."""
    told = [fact for fact in facts if isinstance(fact, NodeValues)]
    shell = next((fact.shell for fact in facts if isinstance(fact, ReadyPlan)), "")
    return [
        *facts,
        *_differences(told, shell),
        *_clocks([fact for fact in facts if isinstance(fact, NodeClock) and fact.cell == CELL]),
    ]


def check_of(name: str) -> str:
    """`version.torch` belongs to `py.same`."""
    return _FAMILIES.get(name.partition(".")[0], OTHERS)


def _differences(told: Sequence[NodeValues], shell: str) -> Iterable[Difference]:
    """A shell has variables that a command over ssh does not get, so those of the node `shell` are
    not compared.
    """
    by_program: dict[str, list[NodeValues]] = defaultdict(list)
    for fact in told:
        by_program[fact.program].append(fact)
    for facts in by_program.values():
        latest = {fact.host: fact for fact in facts}
        if len(latest) < 2:
            continue
        for name in dict.fromkeys(name for fact in latest.values() for name in fact.values):
            measured = {
                host: fact
                for host, fact in latest.items()
                if (fact.complete or fact.values.get(name))
                and not (host == shell and name.startswith("env."))
            }
            yield from _of_name(name, measured)


def _of_name(name: str, told: Mapping[str, NodeValues]) -> Iterable[Difference]:
    camps: dict[str, list[str]] = defaultdict(list)
    for host, fact in told.items():
        value = fact.values.get(name, "") or UNSET
        camps[next((other for other in camps if _same(name, value, other)), value)].append(host)
    if len(camps) < 2:
        return
    rows = tuple(
        (value, tuple(hosts))
        for value, hosts in sorted(camps.items(), key=lambda item: (-len(item[1]), item[0]))
    )
    spec = spec_of(check_of(name))
    base = Difference(
        cell=CELL,
        name=name,
        check=check_of(name),
        camps=rows,
        severity=spec.severity if spec else "warning",
        who=spec.who if spec else "admin",
        fix=spec.fix if spec else "",
        source=spec.source if spec else "",
    )
    majority, majority_hosts = rows[0]
    if 2 * len(majority_hosts) <= len(told):
        everybody = tuple(host for _, hosts in rows for host in hosts)
        if all(_enough(name, value, other) for value, _ in rows for other, _ in rows):
            base = replace(base, severity="warning")
        yield replace(
            base, evidence=_evidence(told, everybody), value=majority, hosts=everybody, tie=True
        )
        return
    for value, hosts in rows[1:]:
        severity = (
            "warning"
            if _enough(name, value, majority) and base.severity in ("blocker", "degraded")
            else base.severity
        )
        yield replace(
            base,
            severity=severity,
            evidence=_evidence(told, hosts),
            value=value,
            hosts=hosts,
            majority=majority,
            majority_hosts=majority_hosts,
        )


def _evidence(told: Mapping[str, NodeValues], hosts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_ for host in hosts for id_ in told[host].evidence))[:8]


def _same(name: str, one: str, other: str) -> bool:
    """A little more or less memory is the same amount."""
    if one == other:
        return True
    share = _AMOUNTS.get(name, 0.0)
    return 0 < share <= _LITTLE and _enough(name, one, other) and _enough(name, other, one)


def _enough(name: str, value: str, other: str) -> bool:
    """Is this amount at least that of the others but for the share that may be missing, or the
    first of a list the same? False for what is neither.
    """
    if name in _FIRST_COUNTS:
        return value.split()[:1] == other.split()[:1] != []
    share = _AMOUNTS.get(name)
    mine, theirs = _amount(value), _amount(other)
    return (
        share is not None
        and mine is not None
        and theirs is not None
        and (mine >= theirs or mine >= (1 - share) * theirs)
    )


def _amount(value: str) -> float | None:
    if value in (UNSET, "unlimited", "max", "-1") or value.endswith(" or more"):
        return math.inf
    try:
        return float(value)
    except ValueError:
        return None


def _clocks(told: Sequence[NodeClock]) -> Iterable[HostCheck]:
    """Each clock against the middle one of all; where only two are known nobody can say which of
    them is wrong, and both are told.
    """
    latest = {fact.host: fact for fact in told}
    if len(latest) < 2:
        return
    ordered = sorted(fact.offset_s for fact in latest.values())
    middle = (
        ordered[len(ordered) // 2]
        if len(ordered) % 2
        else (ordered[len(ordered) // 2 - 1] + ordered[len(ordered) // 2]) / 2
    )
    spec = spec_of(CLOCK)
    for host, fact in latest.items():
        off = fact.offset_s - middle
        beyond = abs(off) > CLOCK_S + fact.within_s
        doubt = not beyond and fact.within_s > CLOCK_S
        way = "ahead of" if off > 0 else "behind"
        says = (
            f"The clock is {abs(off):.1f} s {way} the other nodes'."
            if beyond
            else f"The clock agrees with the other nodes' to {abs(off) + fact.within_s:.1f} s."
        )
        yield HostCheck(
            fact.evidence,
            CELL,
            None,
            CLOCK,
            "fail" if beyond else "unknown" if doubt else "ok",
            f"{off:.3f}",
            "The exchange took too long to compare the clocks to a second." if doubt else says,
            spec.fix if spec else "chronyc makestep",
            "",
            host,
            spec.severity if spec else "degraded",
            spec.who if spec else "admin",
            spec.source if spec else "error files and logs are put in order by their times",
            spec.threshold if spec else f"{CLOCK_S:g} s",
        )
