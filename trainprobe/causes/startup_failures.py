"""What was told of a failure at start-up or in communication: the last words of whoever ended, and
known lines.

Elsewhere an error that repeats another rank's end is not listened to. At start-up it is often all
there is: the store that could not be reached, the peer that refused. So where nobody raised
anything of its own, the echoes speak.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainprobe.causes.phrases import ranks_say, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, late, line_of, statement, text_of
from trainprobe.facts import (
    LogEvent,
    LogJob,
    LogProgress,
    Progress,
    RankEnding,
    RankException,
    Rung,
)
from trainprobe.logtext.retries import tries_again
from trainprobe.model.facts import Fact
from trainprobe.signatures import captured_groups
from trainprobe.stacks.frames import Frame

# What an exception says that comes out of communication or start-up; any other is the program's own
# affair.
_OF_COMMUNICATION = re.compile(
    r"NCCL|nccl|[Gg]loo|c10d|TCPStore|Dist(?:Backend|Network|Store)?Error|[Rr]endezvous|process"
    r" group|(?:client|server) socket|gaierror|ibv_|libuv"
    r"|No route to host|Network is unreachable|Connection (?:refused|timed"
    r" out|reset|closed|aborted)|unhandled (?:system|cuda) error|ncclUnique|MPI_|oneccl|ucx"
)
# Addresses of the web, whose failure is no rank's.
FOREIGN = re.compile(
    r"https?://|ConnectionPool|urlopen|urllib3|requests\.exc|aiohttp|botocore|wandb|huggingface"
    r"|port=443"
)
OFTEN = 3  # tries in vain, after which one that succeeds is not to be expected
_SENT_FROM_OUTSIDE = ("SIGKILL", "SIGSEGV", "SIGBUS", "SIGILL")


@dataclass(frozen=True)
class StartupFailure:
    """`text` is the message; `decides` is false for a mere sign or after another failure."""

    text: str
    fact: Fact
    decides: bool
    last_words: bool = False
    captured: Mapping[str, str] = field(default_factory=dict)
    afterwards: bool = False


def _afterwards(scene: Scene, event: LogEvent) -> bool:
    """Was it printed after ranks had failed of something that is no matter of communication?"""
    first = scene.first_failure
    return (
        first is not None
        and not first.echo
        and _OF_COMMUNICATION.search(first.text) is None
        and first.what != "event"
        and late(scene, event)
    )


def seen_live(scene: Scene) -> tuple[int, ...]:
    """The suspects, of a job that was watched. In logs a network is its hosts' own: whoever says
    that it fails is not at fault, and NCCL's [N] is a device.
    """
    return () if scene.of(LogJob) else scene.ranks


def lines(scene: Scene, *shows: str) -> tuple[LogEvent, ...]:
    """Known lines of the whole cell that show one of these, in order of printing."""
    found = [event for event in scene.of(LogEvent) if event.event in shows]
    return tuple(sorted(found, key=lambda event: (event.place is None, event.place or 0)))


def was_flushed(line: LogEvent) -> bool:
    """Is it only what is left over once a connection is gone (IBV_WC_WR_FLUSH_ERR)?"""
    return line.captured.get("status") == "5"


_MAKES_A_GROUP = re.compile(r"\b(?:init_process_group|new_group|barrier)\(")


def of_communication(exception: RankException) -> bool:
    """Does it come out of start-up or communication?"""
    return (
        _OF_COMMUNICATION.search(text_of(exception)) is not None
        or any("torch/distributed" in frame.file for frame in exception.frames[-3:])
        or (not exception.message and any(map(_makes_a_group, exception.frames[-1:])))
    )


def _makes_a_group(frame: Frame) -> bool:
    """Where a traceback is cut off, its last line may be the call."""
    return _MAKES_A_GROUP.search(frame.text) is not None


def failed_of_something_else(scene: Scene) -> bool:
    """Did the suspects fail outside communication, or were they killed?"""
    if scene.origin is not None:
        return not of_communication(scene.origin)
    ending = scene.first_ending
    return ending is not None and (
        ending.how == "oom_killed" or ending.signal_name in _SENT_FROM_OUTSIDE
    )


def final_exceptions(scene: Scene) -> tuple[RankException, ...]:
    """The exceptions that may name the cause; echoes only if there is no other."""
    origin = scene.origin
    if origin is None:
        return scene.exceptions(scene.world, echo=True)
    if not of_communication(origin):
        return (origin,)
    return (origin, *(other for other in scene.exceptions(scene.world) if other is not origin))


def startup_failure(
    scene: Scene, wording: str, *shows: str, unlike: re.Pattern[str] | None = None
) -> StartupFailure | None:
    """Where it is told first: in the last words, in a known line that shows one of `shows`,
    anywhere in the output. `unlike` passes over what matches it.
    """
    pattern = re.compile(wording)
    for exception in final_exceptions(scene):
        text = text_of(exception)
        match = pattern.search(text)
        if match is not None and (unlike is None or unlike.search(text) is None):
            line, groups = line_of(text, match), captured_groups(match)
            return StartupFailure(line, exception, decides=True, last_words=True, captured=groups)
    events = [event for event in lines(scene, *shows) if not (unlike and unlike.search(event.line))]
    event = min(
        events, key=lambda event: (_afterwards(scene, event), not event.fatal), default=None
    )
    if event is not None:
        after = _afterwards(scene, event)
        told = event.fatal or (tries_again(event.line) and event.count >= OFTEN)
        decides = told and not failed_of_something_else(scene) and not after
        named = event.captured
        return StartupFailure(event.line, event, decides=decides, captured=named, afterwards=after)
    stated = statement(scene, wording)
    if stated is None or (unlike is not None and unlike.search(stated.text) is not None):
        return None
    return StartupFailure(
        stated.text,
        stated.fact,
        decides=stated.origin,
        last_words=stated.origin,
        captured=captured_groups(stated.match),
    )


def weigh_startup_failure(
    scene: Scene,
    what: StartupFailure | None,
    *,
    sure: int = 26,
    sign: int = 13,
    at_start: bool = False,
) -> Weighings:
    """Weigh it: `sure` points where it decides, `sign` points where it is a sign of it, few where
    the ranks failed of something else.

    What belongs to the start of a job (`at_start`) did it no harm once it has made steps.
    """
    if what is None:
        return
    points = sure if what.decides else 6 if failed_of_something_else(scene) else sign
    if what.afterwards or (at_start and not what.last_words and made_steps(scene) > 1):
        points = 3
    who = "The output says"
    if what.fact.rank is not None:
        who = f"{ranks_say([what.fact.rank])} says"
    elif isinstance(what.fact, LogEvent):
        who = "The log says"
    yield weighing(points, "suspects-log", f"{who}: {short(what.text)}", what.fact)
    if what.decides:
        yield from first_to_fail(scene, 3)


# Lines that say better what NCCL's own general words leave open.
_SAID_BETTER = (
    "peer-refused",
    "peer-unanswered",
    "no-route",
    "interface-missing",
    "wrong-interface",
    "loopback-peer",
    "ib-error",
    "ib-setup-failed",
    "ib-async-error",
    "ofi-error",
    "memlock",
    "nccl-shm",
    "nvls",
    "nccl-setting-faulty",
    "nccl-version-mismatch",
    "nccl-topology",
    "world-mismatch",
    "duplicate-gpu",
    "p2p-refused",
    "cuda-oom",
    "connection-closed",
    "nccl-proxy-failed",
    "nccl-no-transport",
    "store-closed",
    "bridges-used",
)


def only_generally(scene: Scene, general: str, *, beside: str = "") -> RankException | None:
    """NCCL's exception that says no more than `general`, if no line says more, but for one that
    shows `beside`.
    """
    for exception in final_exceptions(scene)[:1]:
        text = text_of(exception)
        if (
            re.search(general, text)
            and "Last error:" not in text
            and not lines(scene, *(shown for shown in _SAID_BETTER if shown != beside))
        ):
            return exception
    return None


def weigh_general(scene: Scene, general: str, says: str) -> Weighings:
    """One of several usual reasons for NCCL's general error: a candidate, never a name."""
    bare = only_generally(scene, general)
    if bare is not None:
        yield weighing(10, "suspects-log", f"NCCL says no more than that {says}", bare)


def captured(events: Iterable[LogEvent], name: str) -> tuple[str, ...]:
    """The values of one named group, each once, in order."""
    return tuple(
        dict.fromkeys(event.captured[name] for event in events if event.captured.get(name))
    )


def unanswered_at_the_store(scene: Scene) -> tuple[LogEvent, ...]:
    """Connects to the store that timed out on other hosts while rank 0 served it and waited."""
    rung = scene.one(Rung)
    if (
        rung is None
        or len(rung.hosts) < 2
        or not any(event.rank == 0 for event in lines(scene, "world-incomplete"))
    ):
        return ()
    found = [
        event
        for event in lines(scene, "rendezvous-timeout")
        if event.rank is not None and event.captured.get("host")
    ]
    return tuple(
        event for event in found if rung.host_of(event.rank or 0) not in ("", rung.hosts[0])
    )


def of_several_hosts(scene: Scene) -> bool:
    """Is the job known to run on more than one host?"""
    nodes = scene.given("nodes")
    if nodes is not None and nodes.number is not None:
        return nodes.number > 1
    return len({fact.host for fact in scene.of(LogEvent) if fact.host}) > 1


def of_one_host(scene: Scene) -> bool:
    """Is everything that the log names on one host, as far as it names any?"""
    nodes = scene.given("nodes")
    if nodes is not None and nodes.number is not None:
        return nodes.number == 1
    hosts = {host for job in scene.of(LogJob) for host in job.hosts if host}
    hosts |= {event.host for event in scene.of(LogEvent) if event.host}
    hosts |= {ending.host for ending in scene.of(RankEnding) if ending.host}
    return len(hosts) == 1


def made_steps(scene: Scene) -> int:
    """The largest step that any rank is known to have reached; 0 where none is known."""
    steps = [fact.output_steps or 0 for fact in scene.of(Progress)]
    steps += [fact.step or 0 for fact in scene.of(LogProgress)]
    return max(steps, default=0)
