"""Calls of collectives that a rank made, as the witness journalled them: one fact per call, in order.

The journal is a small memory-mapped ring beside the rank's events, so that it survives an abort or a kill of the rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class CollectiveCall(Fact):
    """One call. `number` counts this rank's calls in `group` from 0; `sizes` and `dtype` are those of its first tensor.

    `finished` is false when the rank was still inside when the journal was read; `at` is Unix time in seconds.
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
