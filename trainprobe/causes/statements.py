"""Messages that carry a cause: an exception, a process's last words, a known line of output."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from trainprobe.causes.phrases import ranks_say, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import (
    ImportTried,
    LogEvent,
    LogProgress,
    LogWork,
    Output,
    ProbeFailure,
    RankException,
)
from trainprobe.logtext.levels import denied, only_informs
from trainprobe.model.diagnosis import Weighing
from trainprobe.model.facts import Fact

# Who ends, kills or watches others speaks of it afterwards: such words explain a failure that
# stands before them.
_TOLD_AFTERWARDS = re.compile(
    r"(?i)slurmstepd|srun:|oom[-_ ]?kill|out of memory: kill|killed"
    r" process|oomkilled|oom_kill|cancelled|time limit|preempt|exitcode|received by"
    r" pid|evicted|NVRM|\bXid\b|kernel:|raylet"
)
LogLine = LogEvent | LogProgress | LogWork
LATE_POINTS = 3
_BESIDE_S = 5.0
# lines behind a failure that may still be of the same breath: what C++ adds, and another stream of
# the same rank
_BESIDE = 40


@dataclass(frozen=True)
class Statement:
    """The first place where a pattern was found. `origin` is true in the suspects' own first
    exception or fatal message.

    `late` is true for a line of a log that stands behind the first failure, or long before it, so
    that it says little about it.
    """

    text: str
    fact: Fact
    origin: bool
    match: re.Match[str]
    late: bool = False


class Quotable(Protocol):
    """Something that was said, with the fact that holds it."""

    @property
    def text(self) -> str: ...

    @property
    def fact(self) -> Fact: ...


def text_of(exception: RankException) -> str:
    """What the exception says, with what it wraps."""
    root = f"{exception.root_type}: {exception.root_message}" if exception.root_type else ""
    return "\n".join(part for part in (f"{exception.type}: {exception.message}", root) if part)


def statement(scene: Scene, pattern: str, ranks: Iterable[int] | None = None) -> Statement | None:
    """The first such message of the suspects (or `ranks`), echoes left out."""
    return next(
        _all_statements(
            scene, re.compile(pattern), frozenset(scene.suspects if ranks is None else ranks)
        ),
        None,
    )


def weigh_statement(scene: Scene, pattern: str, *, log_points: int = 13) -> Weighings:
    """26 points as the suspects' own last words; a line of output may be a by-product."""
    found = statement(scene, pattern)
    if found is None:
        return
    who = ranks_say([found.fact.rank]) if found.fact.rank is not None else "The output"
    points = 26 if found.origin else LATE_POINTS if found.late else log_points
    yield weighing(points, "suspects-log", f"{who} says: {short(found.text)}", found.fact)


def weigh_message(
    scene: Scene, pattern: str, *, log_points: int = 13
) -> Generator[Weighing, None, Statement | None]:
    """Weigh a message that alone shows the cause, and that its rank failed first. Returns it."""
    found = statement(scene, pattern)
    if found is not None:
        yield from weigh_statement(scene, pattern, log_points=log_points)
        yield from first_to_fail(scene)
    return found


def quote(points: int, says: str, found: Quotable | LogLine) -> Weighing:
    """Weigh one line of a log or one message, and quote it behind `says`."""
    if isinstance(found, LogLine):
        return weighing(points, "suspects-log", f"{says}: {short(found.line, 120)}", found)
    return weighing(points, "suspects-log", f"{says}: {short(found.text, 120)}", found.fact)


def quote_after(found: Quotable | None, limit: int = 140) -> str:
    """`: what it says`, to stand behind a clause; empty where nothing was found."""
    return f": {short(found.text, limit)}" if found is not None else ""


def late(scene: Scene, fact: LogEvent) -> bool:
    """Does this line say little about the first failure: after it, or many steps before?"""
    first = scene.first_failure
    if fact.place is None:
        return False
    if fact.lived_through:
        return True
    if first is None:
        return not fact.fatal and _steps_between(scene, fact.place, sys.maxsize)
    # over several files places are no lines apart
    later = fact.at is not None and first.at is not None and fact.at > first.at + _BESIDE_S
    another = None not in (fact.rank, first.rank) and fact.rank != first.rank
    if fact.place > first.place and (later or another or fact.place > first.place + _BESIDE):
        return _TOLD_AFTERWARDS.search(fact.line) is None
    # whoever trains on has survived it, however fatal the words
    return _steps_between(scene, fact.place, first.place)


def _steps_between(scene: Scene, place: int, failed: int) -> bool:
    """Were several steps taken between this line and the failure?"""
    return any(
        len({step for at, step in fact.marks if place < at < failed}) >= 2
        for fact in scene.of(LogProgress)
    )


def first_to_fail(scene: Scene, points: int = 6) -> Weighings:
    """The suspect ended abnormally before any other rank: an order, not a proof."""
    ending = scene.first_ending
    if ending is None or not ending.abnormal or ending.order is None:
        return
    # Ends a few milliseconds apart are seen in any order; those that only repeat another's come
    # after it whatever the clock says.
    rivals = [
        end
        for end in scene.endings(scene.others)
        if end.abnormal and not end.echo and end.order is not None
    ]
    if all(ending.order <= (end.order or 0) for end in rivals):
        how = (
            f"exit code {ending.code}"
            if ending.how == "exited"
            else ending.signal_name or ending.how
        )
        alone = len(scene.world) == 1
        says = (
            f"{ranks_say([ending.rank or 0])} ended with"
            f" {how}{'' if alone else ', before any other rank'}"
        )
        yield weighing(points, "exit-status", says, ending)


def _all_statements(
    scene: Scene, pattern: re.Pattern[str], ranks: frozenset[int]
) -> Iterator[Statement]:
    for exception in scene.exceptions(sorted(ranks)):
        yield from _hit(pattern, text_of(exception), exception, origin=exception is scene.origin)
    for fatal in scene.fatals(sorted(ranks)):
        if not fatal.echo:
            yield from _hit(
                pattern, f"{fatal.exception}\n{fatal.message}", fatal, origin=scene.origin is None
            )
    tardy: list[LogEvent] = []
    for event in scene.of(LogEvent):
        if not event.echo and _of_them(event, ranks):
            if late(scene, event):
                tardy.append(event)
            else:
                yield from _hit(
                    pattern,
                    event.line,
                    event,
                    origin=event.fatal and event.place is not None and _first_word(scene, event),
                )
    for event in tardy:
        yield from (
            replace(found, late=True) for found in _hit(pattern, event.line, event, origin=False)
        )
    for output in scene.of(Output):
        if _of_them(output, ranks):
            yield from _printed(pattern, output)
    for failure in scene.of(ProbeFailure):
        details = "\n".join(f"{value}" for value in failure.details.values())
        yield from _hit(pattern, f"{failure.says}\n{details}", failure, origin=False)
    for tried in scene.of(ImportTried):
        yield from _hit(pattern, f"{tried.error_type}: {tried.error}", tried, origin=False)


def _printed(pattern: re.Pattern[str], output: Output) -> Iterator[Statement]:
    """The first match in what was printed that is of no line that only informs."""
    for match in pattern.finditer(output.tail):
        begin = output.tail.rfind("\n", 0, match.start()) + 1
        before = output.tail[begin : match.start()]
        if not (only_informs(before) or denied(before)):
            yield Statement(line_of(output.tail, match), output, origin=False, match=match)
            return


def _first_word(scene: Scene, event: LogEvent) -> bool:
    """Is this fatal line of a log the first failure, or said right before or beside it?"""
    first = scene.first_failure
    return first is None or first.rank is None or event.rank is None or event.rank in scene.suspects


def _of_them(fact: Fact, ranks: frozenset[int]) -> bool:
    """Is the line of these ranks? The launcher's output, without a rank, counts for all."""
    return fact.rank is None or fact.rank in ranks


def _hit(pattern: re.Pattern[str], text: str, fact: Fact, *, origin: bool) -> Iterator[Statement]:
    match = pattern.search(text)
    if match is not None:
        yield Statement(line_of(text, match), fact, origin, match)


def line_of(text: str, match: re.Match[str]) -> str:
    """The lines of `text` in which the match stands."""
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    return text[start : end if end >= 0 else None]


def last_line(scene: Scene, pattern: str, within: int = 1) -> tuple[Output, str] | None:
    """The output of a suspect in whose last `within` lines the pattern is found, with that line."""
    wanted = re.compile(pattern)
    for output in scene.of(Output):
        if output.rank is None or output.rank in scene.suspects:
            lines = [line for line in output.tail.splitlines() if line.strip()][-within:]
            found = next((line for line in reversed(lines) if wanted.search(line)), None)
            if found is not None:
                return output, found.strip()
    return None


def checked(scene: Scene, *names: str, corroborates: bool = False) -> Weighings:
    """Weigh checks of the host or environment by name. A failed check names a cause in its own
    cell; elsewhere it only corroborates.

    A warning is a level that bites some jobs and not others, so it never names a cause alone.
    """
    for check in scene.checks(*names):
        own = check.cell == scene.cell
        if own or corroborates:
            points = (13 if own else 10) if check.status == "fail" else (6 if own else 3)
            yield weighing(points, "environment-and-limits", check.says.rstrip("."), check)


def advice(scene: Scene, *names: str) -> tuple[str, ...]:
    """What the checks themselves advise to type."""
    return tuple(dict.fromkeys(check.fix for check in scene.checks(*names) if check.fix))
