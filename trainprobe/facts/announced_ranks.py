"""Ranks that announce themselves when they meet: two of one number were given it by launchers that
take themselves for the same node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from trainprobe.facts.log_rows import rows_of
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

ANNOUNCED_CAP = 4096  # of one file
LEAST = 2  # numbers that came twice; of a single one a line may have been printed twice
# lightning/fabric/utilities/distributed.py
_MEMBER = re.compile(r"\bGLOBAL_RANK: ?(\d{1,6}), MEMBER: ?\d{1,6}/(\d{1,6})\b")


@dataclass(frozen=True)
class RankAnnounced(Fact):
    """A process said that it is rank `number` of `of`."""

    number: int = 0
    of: int = 0
    place: int = 0
    seen_at: str = ""


def parse_announced_ranks(record: Evidence) -> list[Fact]:
    """One for each line."""
    found: list[Fact] = [
        RankAnnounced(
            (record.id,),
            record.cell,
            number=int(match[1]),
            of=int(match[2]),
            place=row.place,
            seen_at=row.seen_at,
        )
        for row in rows_of(record)
        if "GLOBAL_RANK: " in row.text and (match := _MEMBER.search(row.text)) is not None
    ]
    return found[:ANNOUNCED_CAP]


def announced_twice(announced: Iterable[RankAnnounced]) -> tuple[RankAnnounced, ...]:
    """The second announcements of ranks, where numbers of the world are missing instead; none where
    all others had come before them, as when a job is started again.
    """
    told = sorted(announced, key=lambda one: one.place)
    first: dict[int, int] = {}
    again = [one for one in told if first.setdefault(one.number, one.place) != one.place]
    world = max((one.of for one in told), default=0)
    if len({one.number for one in again}) < LEAST or len(first) >= world:
        return ()
    return tuple(again) if again[0].place < max(first.values()) else ()
