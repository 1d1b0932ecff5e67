"""What ranks themselves said of their failing, as failures: exceptions, deaths, and lines that
signatures/ call fatal or an echo.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts.exceptions import RankException
from trainprobe.facts.fatal_signals import FatalSignal
from trainprobe.facts.log_events import LogEvent
from trainprobe.facts.log_failures import LogFailure
from trainprobe.facts.log_jobs import LogProgress
from trainprobe.facts.outside_ends import OUTSIDE
from trainprobe.logtext.quotes import cut_at_word, quoted_words
from trainprobe.stacks.places import user_frame

_NUMBERS = re.compile(r"0x[0-9a-fA-F]{1,16}|\d{1,20}")
FAILURES_OF_NOBODY = 60
BREATH = 4  # lines of one breath: what is said of one failure by several voices
_STOPPED = frozenset({"KeyboardInterrupt", "SignalException", "SystemExit"})
LAUNCHER_TYPES = frozenset(
    {"ChildFailedError", "ProcessRaisedException", "ProcessExitedException", "CalledProcessError"}
)
# What a rank says whose workers, peers or children were ended because another rank had failed
# before.
_STOPPED_WORDS = re.compile(
    r"killed by signal: (?:Terminated|Interrupt)|Signal 15|SIGTERM|received signal|DataLoader"
    r" worker .{0,40}exited unexpectedly"
)
STRANGER = "nccl-stranger"
_NCCL_THREAD = re.compile(r"[\w.-]{1,128}:\d{1,9}:\d{1,9} \[\d{1,3}\]")
_LAUNCHED = re.compile(r"python|torchrun|accelerate|deepspeed|launch")


def words_of(
    exceptions: Sequence[RankException],
    signals: Sequence[FatalSignal],
    events: Sequence[LogEvent],
    progress: Sequence[LogProgress],
) -> list[LogFailure]:
    """What ranks themselves said of their failing: of each rank its first own failure, else its
    first echo.
    """
    told: list[LogFailure] = [_raised(fact) for fact in exceptions if not fact.handled]
    told += [
        _died(fact)
        for fact in signals
        if not fact.after_exception and not went_on(fact.rank, fact.place, progress)
    ]
    lines = sorted(
        [line for fact in exceptions for line in _lines_of(fact)]
        + [fact.place for fact in signals if fact.place is not None]
    )
    told += [
        _said(fact)
        for fact in events
        if (fact.fatal or fact.echo)
        and not went_on(fact.rank, fact.place, _behind(fact, progress))
        and not (fact.rank is None and _beside(lines, fact.place or 0))
    ]
    by_rank: dict[int | None, list[LogFailure]] = {}
    for failure in sorted(told, key=lambda one: one.place):
        by_rank.setdefault(failure.rank, []).append(failure)
    found = [_one_of(failures) for rank, failures in by_rank.items() if rank is not None]
    return found + _of_nobody(by_rank.get(None, []))


def _behind(event: LogEvent, progress: Sequence[LogProgress]) -> Sequence[LogProgress]:
    """The progress that can be later. A scheduler's line has whole seconds, so what stands in the
    same second may have been before it.
    """
    if event.event not in OUTSIDE or event.at is None:
        return progress
    return [one for one in progress if one.at is None or one.at >= event.at + 1.0]


def _lines_of(fact: RankException) -> range:
    """Lines on which it stands, a breath apart: its place is its last line, and each frame of
    its own takes two.
    """
    if fact.place is None:
        return range(0)
    own = not fact.echo and not fact.handled
    return range(
        fact.place, fact.place - 2 * len(fact.frames) - 2 if own else fact.place - 1, -BREATH
    )


def _beside(lines: list[int], place: int) -> bool:
    """Does an exception or a death begin on this line, or within a few lines of it? Then a fatal
    line of nobody is the same failure in other words.
    """
    at = bisect.bisect_left(lines, place - BREATH)
    return at < len(lines) and lines[at] <= place + BREATH


def _one_of(failures: list[LogFailure]) -> LogFailure:
    """A rank fails once. Its exception names best what a fatal line right before it began; what
    it said after an echo of another's end is an echo too.
    """
    own = [failure for failure in failures if not failure.echo]
    if not own:
        return failures[0]
    first = own[0]
    echo = failures[0]
    if echo.echo and echo.place < first.place and first.what == "signal":
        return echo  # the watchdog aborts the process that it has complained about
    raised = next((failure for failure in own if failure.what == "exception"), None)
    return (
        replace(raised, place=first.place)
        if raised is not None and first.what == "event"
        else first
    )


def _of_nobody(failures: list[LogFailure]) -> list[LogFailure]:
    """Alike ones once; a fatal line with an exception of nobody behind it is that one's first
    word.
    """
    kept: dict[tuple[str, str, bool], LogFailure] = {}
    for failure in failures:
        kept.setdefault((failure.what, failure.kind, failure.echo), failure)
    found = list(kept.values())
    last = max(
        (failure.place for failure in found if failure.what == "exception" and not failure.echo),
        default=-1,
    )
    own = [
        failure
        for failure in found
        if not (failure.what == "event" and not failure.echo and failure.place <= last)
    ]
    return own[:FAILURES_OF_NOBODY]


def _raised(fact: RankException) -> LogFailure:
    kind, message = (
        (fact.root_type, fact.root_message) if fact.root_type else (fact.type, fact.message)
    )
    frame = user_frame(fact.frames)
    name = kind.rsplit(".", 1)[-1]
    last = fact.type.rsplit(".", 1)[-1]
    echo, of = fact.echo, fact.echo_of
    if not echo and name in _STOPPED:
        echo, of = True, "stopped"
    elif (
        not echo
        and (last in LAUNCHER_TYPES or name in LAUNCHER_TYPES)
        and (name != "CalledProcessError" or _LAUNCHED.search(message))
    ):
        echo, of = True, "launcher"
    elif not echo and _STOPPED_WORDS.search(message[:400]):
        of = "maybe-stopped"
    return LogFailure(
        evidence=fact.evidence,
        cell=fact.cell,
        rank=fact.rank,
        what="exception",
        kind=f"{name}: {_NUMBERS.sub('0', message[:120])}",
        says=f"raised {name}" + (f": {_first_line(message)}" if message else ""),
        where=frame.where if frame is not None else "",
        echo=echo,
        echo_of=of,
        pid=fact.pid,
        at=fact.at,
        place=fact.place or 0,
        host=fact.host,
        seen_at=fact.seen_at,
        text=message[:400],
    )


def _first_line(message: str, cap: int = 160) -> str:
    line = next(
        (text for text in message.splitlines() if any(letter.isalnum() for letter in text)), ""
    ).strip()
    line = line.rstrip(" :") if line.endswith(":") else line.removesuffix(".")
    return cut_at_word(line, cap)


def _died(fact: FatalSignal) -> LogFailure:
    name = fact.signal_name or "a fatal error"
    said = (
        f": {_first_line(fact.message)}"
        if fact.message and fact.message not in ("Aborted", "Segmentation fault")
        else ""
    )
    echo = fact.echo or fact.without_exception
    frame = user_frame(fact.frames)
    return LogFailure(
        evidence=fact.evidence,
        cell=fact.cell,
        rank=fact.rank,
        what="signal",
        kind=f"{name} {fact.exception}",
        says=f"died of {name}{said}",
        where=frame.where if frame is not None else "",
        echo=echo,
        echo_of=fact.echo_of or ("aborted" if echo else ""),
        at=fact.at,
        place=fact.place or 0,
        host=fact.host,
        seen_at=fact.seen_at,
        text=fact.message[:400],
    )


def _said(fact: LogEvent) -> LogFailure:
    return LogFailure(
        evidence=fact.evidence,
        cell=fact.cell,
        rank=fact.rank,
        what="event",
        kind=fact.event,
        says=f"said: {_first_line(quoted_words(fact.line))}",
        echo=fact.echo,
        echo_of=fact.event if fact.echo else "",
        at=fact.at,
        place=fact.place or 0,
        host=fact.host,
        seen_at=fact.seen_at,
        text=fact.line,
    )


def but_of_strangers(events: Sequence[LogEvent]) -> list[LogEvent]:
    """Without the lost connections of NCCL's threads that turned somebody away who is no rank."""
    doors = {_thread(fact) for fact in events if fact.event == STRANGER} - {""}
    return [
        fact
        for fact in events
        if not (fact.event == "connection-closed" and _thread(fact) in doors)
    ]


def _thread(fact: LogEvent) -> str:
    """The thread's own name at the head of its line; where that was read off it, what it told."""
    match = _NCCL_THREAD.search(fact.line)
    told = f"{fact.host} {fact.rank}" if fact.host else ""
    return match.group(0) if match is not None else told


def went_on(
    rank: int | None, place: int | None, progress: Sequence[LogProgress], steps: int = 2
) -> bool:
    """Did this rank (or, where nobody is named, anybody) take so many steps after this place, or
    say that training was completed?
    """
    if place is None:
        return False
    for mine in progress:
        if rank is not None and mine.rank is not None and mine.rank != rank:
            continue
        if mine.finished and mine.place is not None and mine.place > place:
            return True
        before = max((step for at, step in mine.marks if at < place), default=-1)
        if len({step for at, step in mine.marks if at > place and step > before}) >= steps:
            return True
    return False
