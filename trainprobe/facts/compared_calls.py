"""Calls of collectives that torch compared and found to differ, from the finger prints that ranks
printed (TORCH_DISTRIBUTED_DEBUG=DETAIL).

Source: torch 1.8 to 2.13, torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainprobe.facts.collectives import COMPARED, NO_NUMBER, CollectiveCall, operation
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.log_events import LogEvent
from trainprobe.facts.log_jobs import LogJob
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user

FOUND_APART = "Detected mismatch between collectives"
_PRINT = re.compile(
    r"Rank (?P<rank>\d{1,7}) is running (?:inconsistent )?collective: CollectiveFingerPrint\("
    r"(?:SequenceNumber=(?P<number>\d{1,18}),? ?)?OpType=(?P<op>\w{1,40}?)(?=[,) ]|TensorShape|$)"
    r"(?:,? ?TensorShape=\[(?P<shape>[\d, ]{0,80})\](?:, ?TensorDtypes=(?P<dtype>\w{1,20}))?)?"
)


@dataclass(frozen=True)
class FingerPrint:
    """What one rank called; `sizes` are those of its first tensor."""

    rank: int
    number: int
    op: str
    sizes: tuple[int, ...]
    dtype: str


def finger_prints(text: str) -> Iterator[FingerPrint]:
    """Those of the rank that speaks, and of the one from which it differs."""
    for match in _PRINT.finditer(text):
        yield FingerPrint(
            int(match["rank"]),
            int(match["number"]) if match["number"] else NO_NUMBER,
            operation(match["op"]),
            tuple(int(size) for size in re.findall(r"\d+", match["shape"] or "")),
            match["dtype"] or "",
        )


def join_compared_calls(facts: list[Fact]) -> list[Fact]:
    """Add one call for each rank of a logged job that is named in such a comparison."""
    cells = {fact.cell for fact in facts if isinstance(fact, LogJob)}
    found: dict[tuple[str, int], CollectiveCall] = {}
    for fact in facts:
        if fact.cell in cells and isinstance(fact, (RankException, LogEvent)):
            for one in finger_prints(_text(fact)):
                own = isinstance(fact, RankException) and fact.rank == one.rank
                if one.number != NO_NUMBER and (own or (fact.cell, one.rank) not in found):
                    found[fact.cell, one.rank] = _call(fact, one, own=own)
    placed = {
        cell for cell in cells if all(call.file for call in found.values() if call.cell == cell)
    }
    return [
        *facts,
        # where some places are unknown, these would set apart who made the same call
        *(
            call if call.cell in placed else replace(call, frames=(), file="", line=0, function="")
            for call in found.values()
        ),
    ]


def _text(fact: RankException | LogEvent) -> str:
    if isinstance(fact, RankException):
        return fact.message
    return fact.line if fact.event == "collective-mismatch" else ""


def _call(fact: LogEvent | RankException, one: FingerPrint, *, own: bool) -> CollectiveCall:
    shown = fact.frames if own and isinstance(fact, RankException) else ()
    frames = tuple(frame for frame in shown if is_user(frame))
    last = frames[-1] if frames else Frame()
    return CollectiveCall(
        fact.evidence,
        fact.cell,
        one.rank,
        number=one.number,
        op=one.op,
        group=COMPARED,
        sizes=one.sizes,
        dtype=one.dtype,
        file=last.file,
        line=last.line,
        function=last.name,
        at=fact.at or 0.0,
        finished=False,
        source=COMPARED,
        frames=frames,
        place=fact.place,
        seen_at=fact.seen_at,
    )
