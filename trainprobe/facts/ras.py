"""What NCCL's RAS says of the communicators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

DIGITS_CAP = 19


@dataclass(frozen=True)
class RasRank:
    """One rank of a communicator. `number` is the communicator's own; pid and host join it to a rank of the world.

    `counts` are launched (not completed) collectives by operation; RAS counts no send and no receive. `status` as text, where told.
    """

    number: int = 0
    host: str = ""
    pid: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    status: str = ""
    unresponsive: bool = False
    dead: bool = False


@dataclass(frozen=True)
class RasCommunicator(Fact):
    """One NCCL communicator. `lagging` have launched less than others of some operation, `missing` gave no data (numbers of the communicator).

    `ranks` lists all from JSON, and only those that differ from text. Equal counts say nothing of what goes on inside a collective.
    """

    hash: str = ""
    size: int | None = None
    ranks: tuple[RasRank, ...] = ()
    lagging: tuple[int, ...] = ()
    missing: tuple[RasRank, ...] = ()
    errors: tuple[str, ...] = ()
    nccl_version: str = ""


def parse_ras(record: Evidence) -> list[Fact]:
    version = fields.text(record.data, "nccl_version")

    def communicator(row: Mapping[str, Any]) -> Fact:
        ranks = tuple(fields.each(fields.items(row, "ranks"), _rank))
        missing = tuple(fields.each(fields.items(row, "missing"), _rank))
        return RasCommunicator(
            evidence=(record.id,),
            cell=record.cell,
            hash=fields.text(row, "hash"),
            size=fields.whole(row, "size"),
            ranks=ranks,
            lagging=_lagging(ranks, fields.items(row, "camps")),
            missing=missing,
            errors=fields.texts(row, "errors") or (("INCOMPLETE",) if missing else ()),
            nccl_version=version,
        )

    return fields.each(fields.items(record.data, "communicators"), communicator)


def _rank(row: Mapping[str, Any]) -> RasRank:
    number = fields.whole(row, "rank")
    if number is None:
        raise fields.UnreadableError("a rank without a number")
    counts = {str(name): count for name, count in fields.part(row, "counts").items() if isinstance(count, int)}
    value, status = fields.text(row, "value"), ""
    count = _count(value)
    if count is None:
        status = value
    else:
        counts[_operation(fields.text(row, "what"))] = count
    unresponsive, dead = fields.flag(row, "unresponsive") or False, fields.flag(row, "considered_dead") or False
    return RasRank(number, fields.text(row, "host"), fields.whole(row, "pid"), counts, status, unresponsive, dead)


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < DIGITS_CAP else None


def _operation(what: str) -> str:
    """`AllReduce operation counts` is AllReduce; NCCL before 2.26 counts all together."""
    first = what.partition(" ")[0]
    return first if first and first != "collective" else "all"


def _lagging(ranks: tuple[RasRank, ...], camps: list[Any]) -> tuple[int, ...]:
    """Those below the highest count of an operation. In text, the ranks that go with the others are only counted, as a camp."""
    highest: dict[str, int] = {}
    for name, count in [(name, count) for rank in ranks for name, count in rank.counts.items()]:
        highest[name] = max(highest.get(name, 0), count)
    for camp in camps:
        launched = _count(fields.text(camp, "value")) if isinstance(camp, Mapping) else None
        if launched is not None:
            name = _operation(fields.text(camp, "what"))
            highest[name] = max(highest.get(name, 0), launched)
    return tuple(rank.number for rank in ranks if any(count < highest[name] for name, count in rank.counts.items()))
