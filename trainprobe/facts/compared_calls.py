"""Calls of collectives that torch compared and found to differ, from the finger prints that ranks
printed (TORCH_DISTRIBUTED_DEBUG=DETAIL).

torch compares the lengths of the finger prints first. Where these differ, it reads the other's
length as if it were its finger print: the operation that it then shows is a number in disguise, the
sequence number is 0, and there is no tensor.

Source: torch 1.8 to 2.13, torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp; Types.hpp and
Work.hpp there for the order of the operations.
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
_NUMBER = re.compile(r"SequenceNumber=(\d{1,18})")
_OPERATION = re.compile(r"OpType=(\w{1,40})\)")

# In the order of torch's OpType.
_OPERATIONS = (
    "BROADCAST",
    "ALLREDUCE",
    "ALLREDUCE_COALESCED",
    "REDUCE",
    "ALLGATHER",
    "_ALLGATHER_BASE",
    "ALLGATHER_COALESCED",
    "GATHER",
    "SCATTER",
    "REDUCE_SCATTER",
    "ALLTOALL_BASE",
    "ALLTOALL",
    "SEND",
    "RECV",
    "RECVANYSOURCE",
    "BARRIER",
    "_REDUCE_SCATTER_BASE",
    "COALESCED",
    "_ALLREDUCE_SPARSE",
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
    """Those of the rank that speaks, and of the one from which it differs, unless that is none."""
    found = list(_PRINT.finditer(text))
    for place, match in enumerate(found):
        if place and is_length(found[0][0], text[match.start() : match.end() + 1]):
            continue
        yield FingerPrint(
            int(match["rank"]),
            int(match["number"]) if match["number"] else NO_NUMBER,
            operation(match["op"]),
            tuple(int(size) for size in re.findall(r"\d+", match["shape"] or "")),
            match["dtype"] or "",
        )


def is_length(mine: str, other: str) -> bool:
    """Whether the other's finger print, as printed, is only how long it is."""
    number, own = _NUMBER.search(other), _NUMBER.search(mine)
    length, shortest = _length(other), _shortest(other)
    if length is None or length < shortest or (number is not None and number[1] != "0"):
        return False
    if "TensorShape" in mine:
        return True
    # two calls without a tensor have finger prints of one length, and were read as they are
    counted = own is not None and own[1] != "0"
    return counted and length > shortest and length != _length(mine)


def has_no_tensor(other: str) -> bool:
    """Whether a call has no tensor, such as a barrier, by the length of its finger print."""
    return _length(other) == _shortest(other)


def _shortest(other: str) -> int:
    """Operation, number where torch keeps one (from 2.0 on), and how many tensors there are."""
    return 3 if _NUMBER.search(other) else 2


def _length(other: str) -> int | None:
    named = _OPERATION.search(other)
    return _OPERATIONS.index(named[1]) if named and named[1] in _OPERATIONS else None


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
    return compared_text(fact) if fact.event == "collective-mismatch" else ""


def compared_text(event: LogEvent) -> str:
    """The comparison that an event tells of, whole where its line was shortened."""
    mine, theirs = event.captured.get("mine"), event.captured.get("theirs")
    if mine is None or theirs is None:
        return event.line
    return (
        f"Rank {event.captured['rank']} is running collective: {mine}, but Rank"
        f" {event.captured['other']} is running collective: {theirs}"
    )


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
