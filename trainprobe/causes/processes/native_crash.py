"""A rank dies of a fault in native code.

SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT out of a C++ or CUDA extension, a tokenizer, a driver
library, or ctypes: Python has no chance to raise, so there is no traceback, only what faulthandler
and the kernel say.

It is recognised by an end by such a signal that nobody sent, by faulthandler's stack, and by the
kernel's line with the library. It is ruled out where the abort is another thing's voice: gloo that
found the ranks in disagreement, an interpreter that aborts after an exception of its own, or an
echo of another rank's end.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.commands import job
from trainprobe.causes.diverging_calls import DISAGREE, disagreement
from trainprobe.causes.phrases import Fixes, fix, rank_or_process, short, subject
from trainprobe.causes.scene import Scene, Weighings, user_frame, weighing
from trainprobe.causes.statements import first_to_fail, quote, statement
from trainprobe.causes.user_objects import broken, killed_by, weigh_broken
from trainprobe.facts import FatalSignal, LogEvent, RankEnding, Segfault
from trainprobe.model.facts import Fact
from trainprobe.signatures.messages import message

FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS")
BAD_ALLOC = message("native-crash.bad-alloc")
WATCHDOG = message("native-crash.watchdog")
TOLD = message("native-crash.told")


def _faults(scene: Scene) -> tuple[RankEnding, ...]:
    own = [end for end in scene.endings(scene.suspects) if not (end.by_us or end.by_launcher)]
    return tuple(end for end in own if end.how == "signalled" and end.signal_name in FAULTS)


def _weigh(scene: Scene) -> Weighings:
    for end in _faults(scene)[:1]:
        says = f"{rank_or_process(end.rank)} died of {end.signal_name}, which nobody sent"
        yield weighing(13, "exit-status", says, end)
        for fatal in [
            fact
            for fact in scene.fatals([end.rank] if end.rank is not None else [])
            if not fact.echo
        ][:1]:
            # Its own fault: SIGSEGV and the like come from nowhere else; SIGABRT may be some
            # library's way of giving up.
            points = 10 if end.signal_name == "SIGABRT" else 26
            where = user_frame(fatal.frames)
            place = f" at {where.where}" if where is not None else ""
            says = (
                f"It left a fatal-error message for {fatal.signal_name or end.signal_name}{place}"
            )
            yield weighing(points, "suspects-log", says, fatal)
        for line in [fact for fact in scene.facts.of(Segfault) if fact.pid == end.pid][:1]:
            says = f"The kernel logged the crash{f' in {line.library}' if line.library else ''}"
            yield weighing(13, "kernel-log", says, line)
        yield from (weighing for weighing in _against(scene, end))
    given = broken(scene, "died")
    if killed_by(given) in FAULTS:
        yield from weigh_broken(given, 26)
    yield from first_to_fail(scene, 3) if _faults(scene) else ()
    reported = (
        statement(scene, f"(?m){TOLD}") if not _faults(scene) and scene.origin is None else None
    )
    if reported is not None:
        yield quote(13, "The output says", reported)


def _against(scene: Scene, end: RankEnding) -> Weighings:
    ranks = [end.rank] if end.rank is not None else list(scene.suspects)
    disagree = statement(scene, DISAGREE, ranks)
    echoes = [fact for fact in scene.fatals(ranks) if fact.echo]
    own = scene.exceptions(ranks)
    if end.signal_name == "SIGABRT" and disagree is not None:
        says = (
            "The abort is the backend's answer to ranks that do not agree:"
            f" {disagreement(disagree)}"
        )
        yield weighing(-26, "suspects-log", says, disagree.fact)
    elif end.signal_name == "SIGABRT" and (told := _watchdog(scene, end)) is not None:
        says = "It is the abort of c10d's watchdog, which found a collective late"
        yield weighing(-26, "suspects-log", says, told)
    elif echoes or scene.exceptions(ranks, echo=True):
        says = "The crash came after an error that only repeats another rank's end"
        yield weighing(-26, "suspects-log", says, *echoes, *scene.exceptions(ranks, echo=True))
    elif end.signal_name == "SIGABRT" and own:
        yield weighing(-26, "suspects-log", f"It aborted while leaving after {own[0].type}", *own)
    memory = scene.memory
    if statement(scene, BAD_ALLOC, ranks) is not None:
        yield weighing(-10, "host-pressure", "It speaks of memory that could not be had", memory)


def _watchdog(scene: Scene, end: RankEnding) -> Fact | None:
    """The line in which the watchdog of this process gives up waiting, or its thread's stack."""
    ranks = [end.rank] if end.rank is not None else list(scene.suspects)
    stood = statement(scene, WATCHDOG, ranks)
    return (
        stood.fact
        if stood is not None
        else next(
            (
                event
                for event in scene.of(LogEvent)
                if event.event in ("collective-timeout", "watchdog-stuck")
                and event.rank in (end.rank, None)
            ),
            None,
        )
    )


def _fatal(scene: Scene) -> FatalSignal | None:
    return next((fact for fact in scene.fatals(scene.suspects) if not fact.echo), None)


def _summary(scene: Scene) -> str:
    end, fatal = next(iter(_faults(scene)), None), _fatal(scene)
    place = user_frame(fatal.frames) if fatal is not None else None
    library = next(
        (
            f" in {line.library}"
            for line in scene.facts.of(Segfault)
            if end is not None and line.pid == end.pid and line.library
        ),
        "",
    )
    if end is None and (given := broken(scene, "died")) is not None:
        return given.says
    reported = statement(scene, f"(?m){TOLD}") if end is None else None
    what = "a fatal signal"
    if end:
        what = end.signal_name
    elif reported is not None:
        what = f"a fault in native code ({short(reported.text, 80)})"
    return f"{subject(scene)} died of {what}{library}{f' at {place.where}' if place else ''}"


def _fixes(scene: Scene) -> Fixes:
    fatal = _fatal(scene)
    place = user_frame(fatal.frames) if fatal is not None else None
    calls = ""
    if place is not None:
        calls = f"the last Python line was {place.where}: look at what native code it calls"
    command = job(scene) or "<COMMAND>"
    return (
        fix(
            "Find the library of the top native frame",
            calls,
            f"ulimit -c unlimited; {command}",
            "gdb -batch -ex bt <PYTHON> <CORE>",
        ),
        fix(
            "Take its newest build for this torch",
            "pip install --upgrade <PACKAGE>   (or the version that its compatibility table names)",
        ),
    )


CAUSE = Cause(
    id="native-crash",
    title="A rank crashed in native code",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="a core dump's native stack, or one run under gdb",
)
