"""How hard the host and the job's cgroup are pressed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import fields as fields_of
from typing import Any

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Pressure(Fact):
    """Pressure between two looks. `cpu`, `memory` and `io` are the kernel's "some" shares of the last 10 s in percent, of `scope` host or cgroup.

    `throttled` counts the periods in which the cgroup ran out of CPU time between the looks, `throttled_s` how long its threads stood still for
    that (summed over CPUs), None where it has no quota or there was one look. `runnable` are the job's threads in state R, on average over the
    looks, `in_disk_wait` those in D. `usable_cpus` is what the ranks may use together (affinity and quota), `smallest_affinity` the CPUs of the
    rank with the fewest, `load` the load average of one minute, `looked_s` the time between the looks. `host` is told where the job was looked at on several.
    """

    scope: str = "host"
    cpu: float | None = None
    memory: float | None = None
    io: float | None = None
    memory_full: float | None = None
    io_full: float | None = None
    throttled: int | None = None
    load: float | None = None
    usable_cpus: float | None = None
    runnable: int | None = None
    in_disk_wait: int | None = None
    throttled_s: float | None = None
    smallest_affinity: int | None = None
    quota_cpus: float | None = None
    looked_s: float | None = None
    host: str = ""


@dataclass(frozen=True)
class PressureLook(Pressure):
    """One look, before several become one pressure. It stands in no table. Counters here are totals."""

    look: int = 1
    at: float = 0.0
    path: str = ""


def parse_pressure(record: Evidence) -> list[Fact]:
    """Data: see `collect.pressure`. One fact for the host, and one for each cgroup that says something of its own."""
    data = record.data
    common: dict[str, Any] = {
        "evidence": (record.id,),
        "cell": record.cell,
        "look": fields.whole(data, "look") or 1,
        "at": record.began,
        "load": next(iter(value for value in fields.items(data, "load") if isinstance(value, (int, float))), None),
        "usable_cpus": fields.number(data, "usable_cpus"),
        "runnable": fields.whole(data, "runnable"),
        "in_disk_wait": fields.whole(data, "in_disk_wait"),
        "smallest_affinity": fields.whole(data, "smallest_affinity"),
    }
    found: list[Fact] = [PressureLook(**common, **_stalls(fields.part(data, "host")), quota_cpus=fields.number(data, "quota_cpus"))]

    def group(row: Mapping[str, Any]) -> Fact:
        stat = fields.part(row, "cpu_stat")
        return PressureLook(
            **common,
            **_stalls(fields.part(row, "pressure")),
            scope="cgroup",
            path=fields.text(row, "path"),
            throttled=fields.whole(stat, "throttled"),
            throttled_s=fields.number(stat, "throttled_s"),
            quota_cpus=fields.number(row, "quota"),
        )

    return found + fields.each(fields.items(data, "cgroups"), group)


def join_pressure(facts: list[Fact]) -> list[Fact]:
    """One pressure per cell, scope and cgroup: the last look, with what counters rose since the first."""
    by_place: dict[tuple[str, str, str, str], list[PressureLook]] = {}
    for fact in facts:
        if isinstance(fact, PressureLook):
            by_place.setdefault((fact.cell, fact.host, fact.scope, fact.path), []).append(fact)
    return [fact for fact in facts if not isinstance(fact, PressureLook)] + [_joined(sorted(looks, key=lambda one: one.look)) for looks in by_place.values()]


def _joined(looks: list[PressureLook]) -> Pressure:
    first, last = looks[0], looks[-1]
    values: dict[str, Any] = {each.name: getattr(last, each.name) for each in fields_of(Pressure)}
    apart = len(looks) > 1
    values.update(
        evidence=tuple(dict.fromkeys(id_ for look in looks for id_ in look.evidence)),
        throttled=last.throttled - first.throttled if apart and last.throttled is not None and first.throttled is not None else None,
        throttled_s=round(last.throttled_s - first.throttled_s, 6) if apart and last.throttled_s is not None and first.throttled_s is not None else None,
        runnable=_mean([look.runnable for look in looks if look.runnable is not None]),
        in_disk_wait=_mean([look.in_disk_wait for look in looks if look.in_disk_wait is not None]),
        looked_s=round(last.at - first.at, 3) if apart and last.at > first.at > 0 else None,
    )
    return Pressure(**values)


def _mean(numbers: list[int]) -> int | None:
    return round(sum(numbers) / len(numbers)) if numbers else None


def _stalls(data: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: fields.number(fields.part(data, name), "some_avg10") for name in ("cpu", "memory", "io")}
    return {**found, **{f"{name}_full": fields.number(fields.part(data, name), "full_avg10") for name in ("memory", "io")}}
