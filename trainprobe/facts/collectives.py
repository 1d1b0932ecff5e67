"""Calls of collectives that a rank made, by the witness's journal or by torch's flight recorder: one fact per call, in order.

The journal is a small memory-mapped ring beside the rank's events, so that it survives an abort or a kill of the rank. A flight-recorder
dump is read by `facts/flight_dumps.py`, which builds the same fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame

RECORDER = "flight-recorder"


@dataclass(frozen=True)
class CollectiveCall(Fact):
    """One call. `number` counts this rank's calls in `group`, from 0 in the journal; in the recorder it is the group's sequence number.

    `sizes` and `dtype` are those of its first tensor. `finished` is false when the rank was still inside when the journal was read;
    in the recorder, when the work was not done, whether or not the rank's Python waited for it. `at` is Unix time in seconds.

    From the recorder only: `members` are the world ranks of the group, in the order of their ranks in it, () where unknown;
    `members_known` is false where they are only those that were seen; `desc` names the group in words; `state` is scheduled, started or
    completed; `retired` means that the backend gave it up or was done with it; `p2p` is a send or receive and `peer` the world rank at its
    other end (None: any, or unknown); `frames` are the frames that are neither torch's nor Python's own, outermost first.
    """

    number: int = 0
    op: str = ""
    group: str = ""
    sizes: tuple[int, ...] = ()
    dtype: str = ""
    file: str = ""
    line: int = 0
    function: str = ""
    at: float = 0.0
    finished: bool = True
    source: str = "witness"
    members: tuple[int, ...] = ()
    members_known: bool = False
    desc: str = ""
    state: str = ""
    retired: bool = False
    p2p: bool = False
    peer: int | None = None
    frames: tuple[Frame, ...] = ()
    backend: str = ""
    timeout_s: float = 0.0

    @property
    def pending(self) -> bool:
        return not self.finished

    @property
    def recorded(self) -> bool:
        """By torch's flight recorder, not by our witness."""
        return self.source == RECORDER


def parse(record: Evidence) -> list[CollectiveCall]:
    """Read a `collectives` record: data {"calls": [{number, op, group, sizes, dtype, file, line, function, at, finished}]}."""
    calls = record.data.get("calls")
    if not isinstance(calls, (list, tuple)):
        return []
    return [_call(record, row) for row in calls if isinstance(row, Mapping) and isinstance(row.get("op"), str)]


def _call(record: Evidence, row: Mapping[str, Any]) -> CollectiveCall:
    sizes = row.get("sizes")
    return CollectiveCall(
        evidence=(record.id,),
        cell=record.cell,
        rank=record.subject.rank,
        number=_number(row.get("number")),
        op=str(row["op"]),
        group=str(row.get("group") or ""),
        sizes=tuple(_number(size) for size in sizes) if isinstance(sizes, (list, tuple)) else (),
        dtype=str(row.get("dtype") or ""),
        file=str(row.get("file") or ""),
        line=_number(row.get("line")),
        function=str(row.get("function") or ""),
        at=float(_number(row.get("at"))) if not isinstance(row.get("at"), float) else float(row["at"]),
        finished=row.get("finished") is True,
    )


def _number(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18 else 0
