"""The scheduler or a closed terminal ends the job.

A time limit, a preemption or a closed terminal sends SIGTERM or SIGHUP to every process of the job.
Nothing in the job is wrong.

It is recognised by the scheduler's words, by the launcher's report of a signal that it got, and by
a scheduler's end that has come or is near. A rank that failed before the signal rules it out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import Fixes, fixes, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.schedulers_ends import stated
from trainprobe.causes.statements import quote
from trainprobe.facts import Deadline, LogEvent, LogFailure, LogJob, RankEnding, RankException
from trainprobe.facts.outside_ends import OUTSIDE

ENDINGS = ("SIGTERM", "SIGHUP")
STATES = (
    "TIMEOUT",
    "PREEMPTED",
    "NODE_FAIL",
    "DEADLINE",
    "BOOT_FAIL",
    "REVOKED",
    "REQUEUED",
    "CANCELLED",
)
_OF_AN_END = re.compile(r"KeyboardInterrupt|SystemExit|(?:\w+\.)*SignalException")
PRINTS = re.compile(
    r"\bprint\(|tqdm|logging/__init__\.py|stream\.write|fp\.write|sys\.std(?:out|err)|rich/console"
)


def _events(scene: Scene) -> tuple[LogEvent, ...]:
    events = scene.of(LogEvent)
    return tuple(
        event
        for event in events
        if event.event in (*OUTSIDE, "launcher-signalled", "hangup", "signal-seen")
        and event.captured.get("signal", "").removeprefix("Signals.") not in ("2", "SIGINT")
    )


def _weigh(scene: Scene) -> Weighings:
    events = _events(scene)
    yield from _accounted(scene)
    closed = _terminal_closed(scene)
    if closed is not None:
        says = (
            f"It could not print any more ({short(closed.message, 60)}), as when its terminal is"
            " closed"
        )
        yield weighing(26, "suspects-log", says, closed)
        yield weighing(
            6, "suspects-stack", "What failed is a print, a logger or a progress bar", closed
        )
        return
    first = scene.first_ending
    reported = [event for event in events if event.event in OUTSIDE and not event.echo]
    if (
        first is not None
        and first.abnormal
        and first.signal_name not in ENDINGS
        and not _behind(first, reported)
    ):
        if events:
            yield weighing(
                -13, "exit-status", f"Rank {first.rank} had failed by itself before", first
            )
        return
    named = [event for event in events if event.event in OUTSIDE]
    raised = _raised_before(scene, events)
    if raised is not None:
        if named:
            says = f"A rank {raised.says}, which no signal does"
            yield weighing(-13, "suspects-log", says, raised)
        return
    plain = stated(scene)
    if plain is not None:
        says = f"The output says: {short(plain.event.line, 120)}"
        yield weighing(26, "scheduler", says, plain.event)
    elif named:
        yield weighing(13, "scheduler", f"The output says: {short(named[0].line, 120)}", named[0])
    elif events:
        yield quote(13, "The launcher was told to end", events[0])
    nobody = scene.of(RankEnding, rank=None) if scene.one(LogJob) is not None else ()
    ended = [
        end
        for end in (*scene.endings(scene.world), *nobody)
        if end.signal_name in ENDINGS and end.role == "rank"
    ]
    if (
        ended
        and not events
        and ended[0].place is not None
        and all(end in ended or not end.abnormal for end in scene.endings(scene.world))
    ):
        points = 13 if len(ended) > 1 or ended[0].rank is None or len(scene.world) == 1 else 10
        says = (
            f"{ended[0].signal_name} is what launchers and schedulers send, and nothing else failed"
        )
        yield weighing(points, "exit-status", says, *ended)
    elif ended and len(ended) == len(scene.endings(scene.world)) and len(ended) == len(scene.world):
        yield weighing(
            6, "exit-status", f"All {len(ended)} ranks ended by {ended[0].signal_name}", *ended
        )
    over = [
        limit
        for limit in scene.of(Deadline)
        if limit.kind == "scheduler" and limit.ends_at and limit.ends_at <= _now(scene)
    ]
    if over:
        says = f"The scheduler's limit has passed ({over[0].source})"
        yield weighing(10, "environment-and-limits", says, *over)


def _raised_before(scene: Scene, reported: Sequence[LogEvent]) -> LogFailure | None:
    """The first failure, where it is an exception that did not come behind a line of who ends the
    job: lines of two files have no order, and a job that a rank has left often waits until its
    limit.
    """
    first = scene.first_failure
    if first is None or first.echo or first.what != "exception" or _OF_AN_END.match(first.kind):
        return None
    if not first.where:
        return None  # of no line of the program: torchrun's own agents raise when they are ended
    file = first.seen_at.rpartition(":")[0]
    behind = any(
        event.place is not None
        and event.place < first.place
        and event.seen_at.rpartition(":")[0] == file
        for event in reported
    )
    return None if behind else first


def _behind(ending: RankEnding, reported: Sequence[LogEvent]) -> bool:
    """Does this end come after the scheduler's line? Then the scheduler caused it."""
    return ending.place is not None and any(
        event.place is not None and event.place < ending.place for event in reported
    )


def _terminal_closed(scene: Scene) -> RankException | None:
    """Writing to a terminal that is gone gives Errno 5 in a print, a logger or a progress bar."""
    origin = scene.origin
    if (
        origin is None
        or not origin.frames
        or "[Errno 5]" not in f"{origin.message}{origin.root_message}"
    ):
        return None
    if any(
        PRINTS.search(f"{frame.file} {frame.name} {frame.text}") for frame in origin.frames[-3:]
    ):
        return origin
    return None


def _accounted(scene: Scene) -> Weighings:
    """What SLURM's own table says of the job."""
    ends = [end for end in scene.of(RankEnding) if end.role == "scheduler" and end.phase in STATES]
    # the job's own state says why, its steps' only that they were cancelled
    end = min(ends, key=lambda one: STATES.index(one.phase), default=None)
    if end is not None:
        yield weighing(13, "scheduler", f"SLURM ended it: {end.phase}", end)


def _now(scene: Scene) -> float:
    """The time of the last output: what came after the limit. 0 where nothing was timed."""
    return max((event.at or 0.0 for event in scene.of(LogEvent)), default=0.0)


def _summary(scene: Scene) -> str:
    plain = stated(scene)
    if plain is not None:
        return f"{plain.end.says}: {short(plain.event.line, 120)}"
    event = next(iter(_events(scene)), None)
    if _terminal_closed(scene) is not None:
        return "The terminal that the job printed to was closed"
    return (
        "The job was ended from outside, all ranks at"
        f" once{f': {short(event.line, 120)}' if event is not None else ''}"
    )


def _fixes(scene: Scene) -> Fixes:
    plain = stated(scene)
    return plain.end.fixes if plain is not None else FIXES


FIXES = fixes("""
    See why the scheduler ended it
        sacct -j $SLURM_JOB_ID --format=JobID,State,ExitCode,Elapsed,Timelimit
    Keep it apart from the terminal
        tmux new -s train, nohup torchrun ... &, or sbatch
    Save before the end and start again by itself
        #SBATCH --signal=B:USR1@300 --requeue, and a checkpoint on that signal
""")

CAUSE = Cause(
    id="preempted-or-hangup",
    title="The scheduler or a closed terminal ends the job",
    modes=("crash",),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="sacct -j JOB --format=State,Elapsed,Timelimit",
    ranks=nobody,
    accounts_for=("rank-killed", "user-exception"),
)
