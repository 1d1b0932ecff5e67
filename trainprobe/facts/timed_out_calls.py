"""Calls of collectives that ran into their timeout, from the lines that a watchdog, a barrier or a
desync report left in a log.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from trainprobe.facts.collectives import NO_NUMBER, REPORTED, WATCHDOG, CollectiveCall, operation
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.log_events import LogEvent
from trainprobe.facts.log_jobs import LogJob
from trainprobe.model.facts import Fact

FIRST = "the first collective, for which NCCL is set up"
# Timeouts whose lines name no operation. None: the line names it.
_OPERATION_OF = {
    "collective-timeout": None,
    "barrier-timeout": "barrier",
    "unique-id-timeout": FIRST,
}
_GROUP = re.compile(r"\[(?:PG (?:ID )?(?P<id>\d{1,9})|.{0,40}?\bPG GUID (?P<guid>[^\s(\]]{1,40}))")


IN_EVERY_GROUP = 100


def join_timed_out_calls(facts: list[Fact]) -> list[Fact]:
    """Add one CollectiveCall for each call that a rank of a logged job gave up on.

    An exception repeats the watchdog's line, so the same call is told several times and counts
    once.
    """
    cells = {fact.cell for fact in facts if isinstance(fact, LogJob)}
    events = [fact for fact in facts if isinstance(fact, LogEvent) and fact.cell in cells]
    groups = _groups(events)
    silent = cells - {
        fact.cell
        for fact in facts
        if isinstance(fact, RankException)
        or (isinstance(fact, LogEvent) and (fact.fatal or fact.event in _OPERATION_OF))
    }
    found: dict[tuple[object, ...], CollectiveCall] = {}
    for event in events:
        if event.event in _OPERATION_OF or (event.cell in silent and _stood(event)):
            call = _call(event, groups)
            key = (call.cell, call.rank, call.number, call.op, call.numel_in)
            if key not in found or (found[key].place or 0) > (call.place or 0):
                found[key] = call
    return [
        *facts,
        *(call for event in events if event.event == "desync-rank" for call in _reported(event)),
        *sorted(
            _of_the_only_group(_with_names(list(found.values()))),
            key=lambda call: call.place if call.place is not None else -1,
        ),
    ]


def _stood(event: LogEvent) -> bool:
    """Whether a watchdog says, of an error or a timeout, that a call has not come to its end, with
    the one before it done.
    """
    seq, done = event.number("seq"), event.number("completed")
    return (
        event.event == "nccl-last-work"
        and "detected by watchdog" in event.line
        and seq is not None
        and seq - 1 == done
    )


def _with_names(calls: list[CollectiveCall]) -> list[CollectiveCall]:
    """Without those whose line names no operation where another line about the same call does."""
    named = {(call.cell, call.rank, call.number) for call in calls if call.op}
    return [call for call in calls if call.op or (call.cell, call.rank, call.number) not in named]


def _of_the_only_group(calls: list[CollectiveCall]) -> list[CollectiveCall]:
    """Where one group alone has timed out at a number, calls of that number whose line names no
    group are of that group: an excerpt often ends before the line that does. A small number comes
    in every group; there the operation must be the same, too.
    """

    def key(call: CollectiveCall) -> tuple[str, int, str]:
        return call.cell, call.number, call.op if call.number < IN_EVERY_GROUP else ""

    groups: dict[tuple[str, int, str], set[str]] = defaultdict(set)
    for call in calls:
        if call.group and call.number != NO_NUMBER:
            groups[key(call)].add(call.group)
    return [
        replace(call, group=next(iter(known)))
        if not call.group and len(known := groups.get(key(call), set())) == 1
        else call
        for call in calls
    ]


def _groups(events: list[LogEvent]) -> dict[tuple[str, int | None, int | None], str]:
    """(cell, rank, sequence number) -> the group's number, where the line after the watchdog's
    names it.
    """
    found = {}
    for event in events:
        if event.event == "nccl-last-work" and "group" in event.captured:
            found[event.cell, _rank(event), event.number("seq")] = event.captured["group"]
    return found


FAR_OVER = 20  # a watchdog looks every second


def _call(
    event: LogEvent, groups: Mapping[tuple[str, int | None, int | None], str]
) -> CollectiveCall:
    captured = event.captured
    rank, number = _rank(event), event.number("seq")
    match = _GROUP.search(event.line)
    group = (
        captured.get("pg")
        or groups.get((event.cell, rank, number))
        or (match and (match["id"] or match["guid"]))
        or ""
    )
    ms = event.number("timeout_ms") or event.number("ms")
    ran_ms = event.number("ran_ms")
    if ms and ran_ms and ran_ms > FAR_OVER * max(ms, 1000):
        ms = ran_ms  # what is printed as the limit is none, or of another unit
    return CollectiveCall(
        evidence=event.evidence,
        cell=event.cell,
        rank=rank,
        number=NO_NUMBER if number is None else number,
        op=_OPERATION_OF.get(event.event)
        or operation(captured.get("op") or captured.get("what") or ""),
        group=group,
        at=event.at or 0.0,
        finished=False,
        source=WATCHDOG,
        timeout_s=ms / 1000 if ms else 0.0,
        numel_in=event.number("numel_in"),
        numel_out=event.number("numel_out"),
        place=event.place,
        seen_at=event.seen_at,
    )


def _reported(event: LogEvent) -> Iterator[CollectiveCall]:
    """The last call of each rank of one line: finished, and the next one not joined; or joined and
    not finished.
    """
    finished, unfinished = event.number("finished"), event.number("unfinished")
    number = finished if finished is not None else unfinished
    for rank in re.findall(r"\d{1,7}", event.captured.get("ranks", "")):
        if number is not None:
            yield CollectiveCall(
                event.evidence,
                event.cell,
                int(rank),
                number=number,
                group=REPORTED,
                at=event.at or 0.0,
                finished=finished is not None,
                source=REPORTED,
                place=event.place,
                seen_at=event.seen_at,
            )


def _rank(event: LogEvent) -> int | None:
    return event.rank if event.rank is not None else event.number("rank")
