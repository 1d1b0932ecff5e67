"""The lines between a climb and its nodes: what a node is to do, and what it says of its part of
a cell. What comes from a node is foreign input. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from trainprobe.collect.members import Member
from trainprobe.collect.thread_history import CellLooks, Moving, ThreadHistory
from trainprobe.ladder.cell_record import CellRecord, RankRecord
from trainprobe.ladder.cells import Cell
from trainprobe.ladder.outcome import Answered
from trainprobe.ladder.pace import Pace
from trainprobe.ladder.plan import Plan, Rung
from trainprobe.ladder.policy import RankNow
from trainprobe.model.codec import from_json, to_json
from trainprobe.model.evidence import Ended
from trainprobe.targets.launch import Part

SCHEMA = "trainprobe.climb/1"
BEAT_S = 1.0
PING_S = 5.0
FRAMES_SENT = 60
T = TypeVar("T")
# What the looks at a cell write; what the ladder says of itself (plan, rung, node.look,
# interrupted) is not for a node to say.
KINDS = frozenset(
    {
        "cgroup",
        "collectives",
        "error_file",
        "files",
        "flight_recorder",
        "kernel_log",
        "leftovers",
        "locks",
        "mounts",
        "output",
        "pressure",
        "probe.events",
        "process",
        "rank.ended",
        "sockets",
        "source",
        "stacks.native",
        "stacks.python",
    }
)


@dataclass(frozen=True)
class CellAsked:
    """One cell for one node. `alone`: the node decides itself when it is over, as for a probe of
    the host. `hard_s` ends it in any case, also where nobody asks any more.
    """

    rung: Rung
    cell: Cell
    part: Part
    pace: Pace
    deadline_s: float
    hard_s: float
    alone: bool = False

    @property
    def name(self) -> str:
        return self.rung.name(self.cell)


@dataclass(frozen=True)
class Snapshot:
    """A node's part of a cell at one moment; times in seconds since it was started there.
    `failed`: a process of a probe ended without a yes.
    """

    at: float = 0.0
    running: bool = True
    ranks: tuple[RankNow, ...] = ()
    sign_at: float = 0.0
    launcher_failed_at: float | None = None
    stopped_for_s: float = 0.0
    failed: bool = False

    def later(self, by_s: float) -> Snapshot:
        """The same in seconds since a moment that was `by_s` earlier; what never was stays so."""
        return replace(
            self,
            at=self.at + by_s,
            sign_at=self.sign_at + by_s if self.sign_at else 0.0,
            launcher_failed_at=(
                None if self.launcher_failed_at is None else self.launcher_failed_at + by_s
            ),
            ranks=tuple(
                replace(
                    rank,
                    ended_at=rank.ended_at + by_s,
                    sign_at=rank.sign_at + by_s if rank.sign_at else 0.0,
                    stopped_since=None if rank.stopped_since is None else rank.stopped_since + by_s,
                )
                for rank in self.ranks
            ),
        )


@dataclass(frozen=True)
class ProcessLook:
    """What a look at a node's part showed of one process."""

    rank: int | None
    pid: int
    role: str
    moving: Moving
    waits_for_peers: bool
    places: tuple[tuple[tuple[Any, ...], ...], ...] = ()


@dataclass(frozen=True)
class PartOver:
    """A node's report at the end of its part. `trouble` is a failure of our own on that node."""

    record: CellRecord = field(default_factory=CellRecord)
    switched_on: Mapping[str, str] = field(default_factory=dict)
    left_alone: tuple[str, ...] = ()
    missed: bool = False
    trouble: str = ""


class RemoteProcess(ThreadHistory):
    """A process of another node, as its node's look showed it. The `pid` of its member is unique
    over all nodes.
    """

    def __init__(self, look: ProcessLook, place: int) -> None:
        super().__init__(Member(look.rank, place << 40 | look.pid, look.role))
        self._look = look

    @property
    def waits_for_peers(self) -> bool:
        return self._look.waits_for_peers

    @property
    def places(self) -> list[tuple[object, ...]]:
        return [tuple(place) for place in self._look.places]

    def moving(self) -> Moving:
        """As the node judged it."""
        return self._look.moving


def looks_of(looked: CellLooks) -> list[ProcessLook]:
    """A look as it goes home."""
    everyone = (*looked.by_rank.values(), *looked.workers)
    return [
        ProcessLook(
            each.member.rank,
            each.member.pid,
            each.member.role,
            each.moving(),
            each.waits_for_peers,
            tuple(
                tuple(
                    frame if isinstance(frame, tuple) else (frame,) for frame in place[:FRAMES_SENT]
                )
                for place in each.places
            ),
        )
        for each in everyone
    ]


def line(**row: Any) -> bytes:
    """One line, without its end."""
    return json.dumps(to_json(row)).encode()


def read(kind: type[T], value: Any) -> T | None:
    """A `kind` from what was said; None where it has another shape."""
    try:
        return from_json(kind, value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None


def own_ranks(record: CellRecord, part: Part) -> CellRecord:
    """Keep the record of the node's own ranks: it cannot speak for others."""
    mine = range(part.first, part.first + part.nproc)
    return replace(
        record,
        ranks=tuple(rank for rank in record.ranks if rank.rank in mine),
        answers=tuple(
            answer for answer in record.answers if answer.rank is None or answer.rank in mine
        ),
    )


def record_of_lost_part(part: Part, says: str, *, probe: bool) -> CellRecord:
    """The record in place of a part that never arrived: nobody saw its ranks end."""
    unseen = Ended("not_run", reason=says, by_us=True)
    mine = range(part.first, part.first + part.nproc)
    if probe:
        return CellRecord(answers=tuple(Answered(rank, "", "", unseen) for rank in mine))
    return CellRecord(ranks=tuple(RankRecord(rank) for rank in mine))


def plan_for_nodes(plan: Plan) -> dict[str, Any]:
    """What a node needs to know of the plan."""
    row: dict[str, Any] = to_json(
        replace(plan, rungs=(), gpus_seen=None, way=None, timeout_s=None, notes=())
    )
    return row
