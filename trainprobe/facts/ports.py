"""What network ports counted between two looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from typing import Any

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class PortCounters(Fact):
    """One port (`mlx5_0/1`, `eth0`, `tcp` for the host's TCP). `state` is ACTIVE, DOWN, up or down; counts are increases between the looks.

    `kind` is infiniband, efa, ethernet or tcp. `errors` holds the names of the error counters that grew, with by how much; `waits` those that
    grow under congestion too; `totals` the error counters that are not 0, since the port came up. Counts are None where there was one look. `host` is told where the job was looked at on several.
    """

    port: str = ""
    kind: str = ""
    state: str = ""
    sent_bytes: int | None = None
    received_bytes: int | None = None
    retransmits: int | None = None
    errors: dict[str, int] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    looked_s: float | None = None
    host: str = ""


@dataclass(frozen=True)
class PortLook(PortCounters):
    """One look, before two become counts. It stands in no table. `counters` and `totals` are since the port came up."""

    look: int = 1
    at: float = 0.0
    counters: dict[str, int] = field(default_factory=dict)


def parse_ports(record: Evidence) -> list[Fact]:
    look = fields.whole(record.data, "look") or 1

    def port(row: Mapping[str, Any]) -> Fact:
        return PortLook(
            evidence=(record.id,),
            cell=record.cell,
            port=fields.text(row, "port"),
            kind=fields.text(row, "kind"),
            state=fields.text(row, "state"),
            look=look,
            at=record.began,
            counters=_counts(row, "counters"),
            totals=_counts(row, "errors"),
        )

    return fields.each(fields.items(record.data, "ports"), port)


def join_ports(facts: list[Fact]) -> list[Fact]:
    """One per cell, host and port: the last look, with what the counters rose since the first."""
    by_port: dict[tuple[str, str, str], list[PortLook]] = {}
    for fact in facts:
        if isinstance(fact, PortLook):
            by_port.setdefault((fact.cell, fact.host, fact.port), []).append(fact)
    return [fact for fact in facts if not isinstance(fact, PortLook)] + [_joined(sorted(looks, key=lambda one: one.look)) for looks in by_port.values()]


BYTES = {"sent_bytes": "sent_bytes", "received_bytes": "received_bytes", "RetransSegs": "retransmits"}


def _joined(looks: list[PortLook]) -> PortCounters:
    first, last = looks[0], looks[-1]
    values: dict[str, Any] = {each.name: getattr(last, each.name) for each in fields_of(PortCounters)}
    values["evidence"] = tuple(dict.fromkeys(id_ for look in looks for id_ in look.evidence))
    values["totals"] = {name: count for name, count in last.totals.items() if count}
    if len(looks) > 1:
        rises = _rises(first.counters, last.counters)
        values.update({ours: rises[name] for name, ours in BYTES.items() if name in rises})
        values["waits"] = {name: rise for name, rise in rises.items() if name not in BYTES and name != "OutSegs" and rise}
        values["errors"] = {name: rise for name, rise in _rises(first.totals, last.totals).items() if rise}
        values["looked_s"] = round(last.at - first.at, 3) if last.at > first.at > 0 else None
    return PortCounters(**values)


def _rises(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """A counter that fell was reset in between: then its new value is all that is known to have been added."""
    return {name: value - before[name] if value >= before[name] else value for name, value in after.items() if name in before}


def _counts(row: Mapping[str, Any], name: str) -> dict[str, int]:
    data = fields.part(row, name)
    return {str(key): count for key in data if (count := fields.whole(data, key)) is not None}
