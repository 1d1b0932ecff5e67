"""What a dying process said of the signal that ended it: faulthandler's text, `terminate called
after …`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainprobe.facts.endings import RankEnding
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.log_events import LogEvent, whole_text
from trainprobe.facts.main_threads import MainThread
from trainprobe.logtext.streams import split_ranks
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.classify import classify
from trainprobe.stacks.echoes import echo_of
from trainprobe.stacks.faulthandler_text import Dump, parse_deaths
from trainprobe.stacks.frames import Frame

# c10/util/Exception.h, thrown by the process groups and their stores
_DISTRIBUTED = frozenset(
    {"c10::DistBackendError", "c10::DistNetworkError", "c10::DistStoreError", "c10::DistError"}
)


_BESIDE = 40  # lines: a stack of C++


@dataclass(frozen=True)
class FatalSignal(Fact):
    """`signal_name` is SIGSEGV, SIGABRT, SIGBUS, SIGFPE or SIGILL. `message` is what C++ said
    (`what()`) or faulthandler's line.

    `exception` is the C++ type after "terminate called after throwing an instance of", empty
    otherwise.
    `frames` are the current thread's Python frames, `main_frames` the main thread's, outermost
    first. `echo` is as in RankException.
    `after_exception` is true when the rank had already raised: then the signal is only how its
    shut-down went wrong.
    `library` is the first native library on the stack that is neither Python nor the C library,
    where a newer Python shows it.
    `place`, `at` (Unix seconds), `host` and `seen_at` (file and line) are known where it was read
    in logs afterwards.
    """

    signal_name: str = ""
    frames: tuple[Frame, ...] = ()
    from_faulthandler: bool = False
    message: str = ""
    exception: str = ""
    echo: bool = False
    echo_of: str = ""
    extension_modules: tuple[str, ...] = ()
    library: str = ""
    main_frames: tuple[Frame, ...] = ()
    without_exception: bool = False
    after_exception: bool = False
    at: float | None = None
    place: int | None = None
    host: str = ""
    seen_at: str = ""


def parse_fatal_signals(record: Evidence) -> list[Fact]:
    """Deaths told of in output. A launcher's unprefixed text belongs to no rank yet;
    `join_fatal_signals` looks for it.
    """
    found: list[Fact] = []
    for rank, lines in split_ranks(whole_text(record), shared=record.subject.rank is None).items():
        of = record.subject.rank if rank is None else rank
        deaths = parse_deaths(lines)
        # A process dies once; what follows in its own stream is the dying itself.
        found += [
            fatal_signal(record, of, death) for death in (deaths if of is None else deaths[:1])
        ]
    return found


def fatal_signal(record: Evidence, rank: int | None, death: Dump) -> FatalSignal:
    """The fact of one death that the text of `record` tells of."""
    current, main = death.current(), death.main()
    return FatalSignal(
        evidence=(record.id,),
        cell=record.cell,
        rank=rank,
        signal_name=death.signal_name,
        frames=tuple(current.frames) if current else (),
        from_faulthandler=death.from_faulthandler,
        message=death.message,
        exception=death.exception,
        extension_modules=death.extension_modules,
        library=death.library,
        main_frames=tuple(main.frames) if main else (),
        without_exception=death.without_exception,
    )


def join_fatal_signals(facts: list[Fact]) -> list[Fact]:
    """Give each death its rank, say whether it only follows an exception, and make a main thread
    of its stack.
    """
    raised = [
        fact
        for fact in facts
        if isinstance(fact, RankException) and not fact.handled and fact.role == "rank"
    ]
    endings = [fact for fact in facts if isinstance(fact, RankEnding) and fact.role == "rank"]
    gave_up = [
        fact
        for fact in facts
        if isinstance(fact, LogEvent) and fact.event in ("collective-timeout", "watchdog-frame")
    ]
    deaths: list[FatalSignal] = []
    for fact in facts:
        if isinstance(fact, FatalSignal):
            death = _after(_attributed(fact, deaths, raised, endings), raised)
            deaths.append(_of_the_watchdog(death, gave_up))
    kept = [fact for fact in facts if not isinstance(fact, FatalSignal)]
    threads: list[Fact] = [
        _main_thread(death) for death in deaths if death.main_frames and death.rank is not None
    ]
    return kept + deaths + threads


def _attributed(
    death: FatalSignal,
    known: list[FatalSignal],
    raised: list[RankException],
    endings: list[RankEnding],
) -> FatalSignal:
    if death.rank is not None:
        return death
    taken = {other.rank for other in known if other.cell == death.cell}
    ranks = {
        ending.rank
        for ending in endings
        if ending.cell == death.cell and ending.signal_name == death.signal_name
    } - taken
    speakers = {exception.rank for exception in raised if exception.cell == death.cell}
    # `terminate called without an active exception` is how a process ends that has raised already;
    # a thrown one comes out of the blue.
    likely = ranks & speakers if death.without_exception else ranks - speakers
    chosen = likely or ranks
    return replace(death, rank=chosen.pop()) if len(chosen) == 1 else death


def _after(death: FatalSignal, raised: list[RankException]) -> FatalSignal:
    before = next(
        (
            one
            for one in raised
            if one.cell == death.cell and one.rank == death.rank and death.rank is not None
        ),
        None,
    )
    if before is not None:
        return replace(death, after_exception=True, echo=before.echo, echo_of=before.echo_of)
    echo = echo_of("RuntimeError", death.message)
    return replace(death, echo=bool(echo), echo_of=echo)


def _of_the_watchdog(death: FatalSignal, gave_up: list[LogEvent]) -> FatalSignal:
    """Such a death without a word of its own is the watchdog's way to end a rank whose collective
    timed out: ProcessGroupNCCL throws in a thread that nobody catches for.
    """
    if death.echo or death.after_exception:
        return death
    if death.signal_name == "SIGABRT" and any(
        one.event == "watchdog-frame"
        and one.cell == death.cell
        and one.rank == death.rank
        and abs((one.place or 0) - (death.place or 0)) <= _BESIDE
        for one in gave_up
    ):
        return replace(death, echo=True, echo_of="watchdog-frame")
    if death.message or not death.exception:
        return death
    told = any(
        one.cell == death.cell and (None in (one.rank, death.rank) or one.rank == death.rank)
        for one in gave_up
    )
    # two processes that die at once write into each other's lines
    nameless = death.exception.startswith("terminate called")
    if death.exception in _DISTRIBUTED or (
        told and (nameless or death.exception == "std::runtime_error")
    ):
        return replace(death, echo=True, echo_of="collective-timeout")
    return death


def _main_thread(death: FatalSignal) -> MainThread:
    place = classify(death.main_frames)
    user = place.user
    return MainThread(
        evidence=death.evidence,
        cell=death.cell,
        rank=death.rank,
        frames=death.main_frames,
        leaf=place.leaf,
        op=place.op,
        where=user.where if user else death.main_frames[-1].where,
        user_file=user.file if user else "",
        user_line=user.line if user else 0,
        user_function=user.name if user else "",
        source="faulthandler",
        importing=place.importing,
        in_atexit=place.in_atexit,
        in_backward=place.in_backward,
    )
