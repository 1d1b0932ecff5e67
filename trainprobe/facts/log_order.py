"""One order over the lines of all logs that were read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from trainprobe.facts.log_failures import LogFailure
from trainprobe.facts.log_jobs import LogJob, LogProgress
from trainprobe.facts.log_rows import LINES_APART
from trainprobe.model.facts import Fact


def join_log_order(facts: list[Fact]) -> list[Fact]:
    """Give every `place` its number in one order over all files: by time, lines without a stamp
    after the last one before them.
    """
    placed: list[Any] = [
        fact
        for fact in facts
        if getattr(fact, "place", None) is not None and not isinstance(fact, LogFailure)
    ]
    if not placed or not any(isinstance(fact, LogJob) for fact in facts):
        return facts
    clocks = _clocks(placed)
    if len(clocks) < 2:
        return facts
    ends = max((at for at in clocks.values() if at is not None), default=0.0)

    def key(place: int, at: float | None) -> tuple[float, int]:
        first = clocks.get(place // LINES_APART)
        return (at if at is not None else first if first is not None else ends, place)

    times: dict[int, float | None] = {}
    for fact in placed:
        for place in (fact.place, *(mark[0] for mark in getattr(fact, "marks", ()))):
            times[place] = getattr(fact, "at", None)
        if isinstance(fact, LogProgress) and fact.first_place is not None:
            times.setdefault(fact.first_place, fact.first_at)
    for fact in facts:
        if isinstance(fact, LogJob) and fact.last_place:
            times.setdefault(fact.last_place, fact.last_at)
    ordered = sorted(key(place, at) for place, at in times.items())
    number = {place: count for count, (_, place) in enumerate(ordered)}
    return [
        (
            _moved(fact, number)
            if getattr(fact, "place", None) is not None or isinstance(fact, LogJob)
            else fact
        )
        for fact in facts
    ]


def _clocks(placed: Iterable[Any]) -> dict[int, float | None]:
    """The first known time of each file; None for a file without any."""
    clocks: dict[int, float | None] = {}
    for fact in placed:
        file, at = fact.place // LINES_APART, getattr(fact, "at", None)
        known = clocks.get(file)
        clocks[file] = at if known is None else min(known, at) if at is not None else known
    return clocks


def _moved(fact: Any, number: dict[int, int]) -> Fact:
    if isinstance(fact, LogJob):
        return replace(fact, last_place=number.get(fact.last_place, fact.last_place))
    if isinstance(fact, LogProgress):
        marks = tuple((number.get(place, place), step) for place, step in fact.marks)
        first = number.get(fact.first_place) if fact.first_place is not None else None
        return replace(fact, place=number.get(fact.place or 0), first_place=first, marks=marks)
    moved: Fact = replace(fact, place=number.get(fact.place, fact.place))
    return moved
