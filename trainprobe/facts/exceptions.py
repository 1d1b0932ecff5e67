"""The exceptions that ended ranks, told apart from the echoes of another rank's end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainprobe.facts.frame_rows import frames_of
from trainprobe.facts.log_events import whole_text
from trainprobe.facts.probe_results import events_of, is_witness, moment
from trainprobe.logtext.streams import split_ranks
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.echoes import echo_of
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_native, is_user, module_importing
from trainprobe.stacks.traceback_text import MESSAGE_CAP, Printed, Raised, parse_tracebacks, unwrap

INTERRUPTION = "KeyboardInterrupt"
BEHIND_LINES = 100  # what a tracker, NCCL and other ranks may still print behind the last traceback
# Where a program begins that has no module level in its traceback: runpy, multiprocessing.
_TOP = frozenset({"_run_module_as_main", "_run_code", "_bootstrap", "_wrap", "spawn_main"})
# torch/csrc/distributed/c10d/exception.h; the branches of CPython's OSError that a peer or a
# network causes.
_OF_THE_SYSTEM = frozenset(
    {
        *("DistError", "DistNetworkError", "DistStoreError", "DistBackendError"),
        *("TimeoutError", "timeout"),
        *(
            "ConnectionError",
            "ConnectionRefusedError",
            "ConnectionResetError",
            "ConnectionAbortedError",
        ),
        *("BrokenPipeError", "EOFError", "RendezvousConnectionError", "RendezvousTimeoutError"),
    }
)


@dataclass(frozen=True)
class RankException(Fact):
    """One uncaught exception of one process.

    `type` and `message` are those of the exception that ended it. Where that one only wraps another
    (a DataLoader worker's, an explicit `raise … from`), `root_type` and `root_message` are the
    first of the chain, and `frames` are the first one's, outermost first. `echo` is true for what
    only repeats another rank's death or absence; `echo_of` says which kind.
    `module_importing` is the module whose import was under way. `worker` is the DataLoader worker
    that it happened in.
    `source` is witness, error-file, output or probe (an object of the user's in a child of a probe,
    `role` says which): the best of those that showed it. `handled` is true for one that did not end
    its
    process: caught and printed, or of a thread. `place` orders what was read in logs afterwards,
    None for what was gathered live; `seen_at` is the file and line where it stood there.
    `last_words`: the printed traceback begins where the program does, and little follows it, as
    where it ended the process; one that was caught begins at the `try`. `ends_output`: little
    follows it, wherever it begins. `child` is the name or the
    program of a process that ended with it: one below a rank, where the rank lives on.
    """

    type: str = ""
    message: str = ""
    frames: tuple[Frame, ...] = ()
    at: float | None = None
    source: str = "output"
    echo: bool = False
    echo_of: str = ""
    module_importing: str = ""
    root_type: str = ""
    root_message: str = ""
    thread: str = "MainThread"
    worker: int | None = None
    pid: int | None = None
    role: str = "rank"
    handled: bool = False
    place: int | None = None
    host: str = ""
    seen_at: str = ""
    last_words: bool = False
    ends_output: bool = False
    child: str = ""

    @property
    def interrupted(self) -> bool:
        """A person pressed Ctrl-C: the traceback only shows where the process stood."""
        return INTERRUPTION in (self.type.rsplit(".", 1)[-1], self.root_type.rsplit(".", 1)[-1])

    @property
    def of_a_helper(self) -> bool:
        """It ended a process below a rank, or a thread beside its main one; the rank lives on."""
        return bool(self.child) or self.thread not in ("", "MainThread")

    @property
    def of_the_system(self) -> bool:
        """Of a kind that networks and systems cause, and not raised by a line of the user's."""
        kind = (self.root_type or self.type).rsplit(".", 1)[-1]
        python = [frame for frame in self.frames if not is_native(frame)]
        return kind in _OF_THE_SYSTEM and not (python and is_user(python[-1]))


def parse_witness_exceptions(record: Evidence) -> list[Fact]:
    """Uncaught exceptions as the witness saw them, and the one being handled where the program
    then left with a failing status.
    """
    found: list[Fact] = []
    for event in events_of(record):
        if not is_witness(event):
            continue
        if event["event"] == "fail":
            found += _witnessed(record, event, event)
        elif (
            event.get("name") == "leave"
            and event.get("code")
            and isinstance(event.get("handling"), Mapping)
        ):
            found += _witnessed(record, event, event["handling"])
    return found


def parse_given_exceptions(record: Evidence) -> list[Fact]:
    """What the user's own objects raised in a child of a probe: `fail` events with `given`
    (model, dataset, collate), `type`, `message` and `frames`.
    """
    found: list[Fact] = []
    for event in events_of(record):
        given, kind, message, rows = (
            event.get(name) for name in ("given", "type", "message", "frames")
        )
        if (
            event["event"] == "fail"
            and isinstance(given, str)
            and given
            and isinstance(kind, str)
            and kind
        ):
            frames = frames_of(rows if isinstance(rows, list) else ())
            fact = exception_of(
                record,
                (Raised(kind, message if isinstance(message, str) else "", frames),),
                "probe",
                moment(event),
            )
            found.append(replace(fact, role=given[:40]))
    return found


def _witnessed(record: Evidence, event: Mapping[str, Any], told: Mapping[str, Any]) -> list[Fact]:
    kind, message, rows = told.get("type"), told.get("message"), told.get("frames")
    if not isinstance(kind, str) or not kind:
        return []
    frames = frames_of(rows if isinstance(rows, list) else ())
    importing, thread, pid = told.get("during_import"), event.get("thread"), event.get("pid")
    fact = exception_of(
        record,
        (Raised(kind, message if isinstance(message, str) else "", frames),),
        "witness",
        moment(event),
    )
    return [
        replace(
            fact,
            module_importing=(
                importing[:400]
                if isinstance(importing, str) and importing
                else fact.module_importing
            ),
            thread=thread[:200] if isinstance(thread, str) and thread else "MainThread",
            pid=pid if isinstance(pid, int) and not isinstance(pid, bool) else record.subject.pid,
        )
    ]


def parse_error_file(record: Evidence) -> list[Fact]:
    """Data: {message: {message, extraInfo: {py_callstack, timestamp}}}, as torchelastic writes
    it; `message` may be plain text.
    """
    body = record.data.get("message")
    if not isinstance(body, Mapping):
        return []
    extra = fields.part(body, "extraInfo")
    stamp = fields.text(extra, "timestamp")
    at = float(stamp) if stamp.replace(".", "", 1).isdecimal() and len(stamp) < 20 else None
    printed = parse_tracebacks(fields.text(extra, "py_callstack").splitlines())
    if printed:
        return [exception_of(record, printed[-1].chain, "error-file", at)]
    kind, _, message = fields.text(body, "message").partition(": ")
    return (
        [exception_of(record, (Raised(kind, message),), "error-file", at)]
        if kind.isidentifier()
        else []
    )


def parse_printed_exceptions(record: Evidence) -> list[Fact]:
    """Tracebacks in output, those of a launcher by the ranks that their prefixes name. All but
    the last of a rank were handled.
    """
    found: list[Fact] = []
    role = record.subject.role or "rank"
    for rank, lines in split_ranks(whole_text(record), shared=record.subject.rank is None).items():
        printed = parse_tracebacks(lines)
        mine = [_printed(record, one, rank, role, len(lines)) for one in printed]
        deadly = [
            place
            for place, one in enumerate(printed)
            if not one.ignored and one.thread == "MainThread"
        ]
        found += [
            replace(one, handled=one.handled or place != (deadly[-1] if deadly else -1))
            for place, one in enumerate(mine)
        ]
    return found


def _printed(
    record: Evidence, printed: Printed, rank: int | None, role: str, lines: int
) -> RankException:
    fact = exception_of(record, printed.chain, "output", None)
    of = fact.rank if rank is None else rank
    ends = lines - printed.ends <= BEHIND_LINES
    return replace(
        fact,
        rank=of,
        role="rank" if of is not None else role,
        thread=printed.thread,
        handled=printed.ignored,
        child=printed.process,
        last_words=ends and _from_the_top(printed.chain[-1]),
        ends_output=ends,
    )


def _from_the_top(raised: Raised) -> bool:
    first = raised.frames[0] if raised.frames else None
    return first is not None and (first.name == "<module>" or first.name in _TOP)


def exception_of(
    record: Evidence, chain: tuple[Raised, ...], source: str, at: float | None
) -> RankException:
    """Which of a chain counts.

    `type` and `message` are the last one's: it ended the process. The first one is the root: its
    frames are the telling ones when the last was raised *from* it or only repeats that the others
    are gone (a barrier in a `finally`); then the root is the exception. Whether it is an echo is
    judged on the root.
    """
    chain = tuple(unwrap(one) for one in chain)
    first, last = chain[0], chain[-1]
    echo = _echo_of(first)
    shown = first if not echo and _echo_of(last) else last
    root = first if len(chain) > 1 else (last if last.wrapper else None)
    frames = first.frames if root is not None and first.frames else shown.frames
    return RankException(
        evidence=(record.id,),
        cell=record.cell,
        rank=record.subject.rank,
        type=shown.type,
        message=shown.message[:MESSAGE_CAP],
        frames=frames,
        at=at,
        source=source,
        echo=bool(echo),
        echo_of=echo,
        module_importing=module_importing(frames),
        root_type=root.type if root is not None else "",
        root_message=root.message[:MESSAGE_CAP] if root is not None else "",
        worker=next((one.worker for one in chain if one.worker is not None), None),
        pid=record.subject.pid,
        role=record.subject.role or "rank",
    )


def _echo_of(raised: Raised) -> str:
    return echo_of(raised.type, raised.message, tuple(frame.file for frame in raised.frames))
