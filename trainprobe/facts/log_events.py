"""Known lines in output, found by the patterns in signatures/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainprobe.facts import torchrun_report
from trainprobe.facts.printed_pace import PrintedPace, pace_of
from trainprobe.facts.steps import steps_printed
from trainprobe.logtext.streams import split_ranks
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.signatures import find
from trainprobe.stacks.traceback_text import parse_tracebacks

TAIL_CHARACTERS = 8000
LINE_CHARACTERS = 400


@dataclass(frozen=True)
class LogEvent(Fact):
    """`signature` is the pattern's id, `event` what it shows (fd-limit, port-in-use …), `line` the
    first such line, `count` how many.

    `captured` holds the pattern's named groups of that first line. `echo` is true for what only
    repeats another rank's end.
    `role` says whose output it was: rank or launcher. `fatal` is true where whoever printed the
    line has failed. `lived_through`: whoever printed it has survived it. In a live job it stands in
    a traceback, or steps were printed after it; in a log it says what was done instead, or it is
    the last line of a traceback that Python ignored or its program handled.
    `place` orders the lines of logs that were read afterwards (0 first, over all files), None in
    what was gathered live; `seen_at` is then the file and line, `rank3.err:118`.
    """

    signature: str = ""
    event: str = ""
    line: str = ""
    count: int = 1
    stream: str = ""
    at: float | None = None
    captured: Mapping[str, str] = field(default_factory=dict)
    echo: bool = False
    role: str = "rank"
    fatal: bool = False
    place: int | None = None
    host: str = ""
    seen_at: str = ""
    lived_through: bool = False

    @property
    def kills_all(self) -> bool:
        """Does a launcher say that it ends all that are left, by SIGKILL at last? srun does so once
        a task has failed or the step is cancelled.
        """
        return self.event == "launcher-kills-all" or self.signature == "srun-terminating"

    def number(self, name: str) -> int | None:
        """The whole number that the pattern captured under this name; None where it captured
        none.
        """
        text = self.captured.get(name, "").strip()
        return int(text) if text.lstrip("-").isdecimal() and len(text) < 19 else None


@dataclass(frozen=True)
class Output(Fact):
    """How much a process printed. `first_at` and `last_at` are Unix seconds, None where nothing
    came. `silent_s` is for how long nothing more had come when a live job was looked at.

    Of logs that were read afterwards the tail ends with the first failure; `rows` are (line, at,
    text) until that is known.
    """

    stream: str = ""
    bytes: int = 0
    cut_bytes: int = 0
    tail: str = ""
    first_at: float | None = None
    last_at: float | None = None
    role: str = "rank"
    file: str = ""
    rows: tuple[tuple[int, float | None, str], ...] = ()
    silent_s: float | None = None


def whole_text(record: Evidence) -> str:
    """Head and tail of an output as one text. The tail begins where the head ends, or later when
    something was left out between them.
    """
    head, tail = fields.text(record.data, "head"), fields.text(record.data, "tail")
    left_out = fields.whole(record.data, "left_out_bytes")
    if left_out == 0 or not tail or not head:
        return head + tail
    return head if left_out is None and head.endswith(tail) else f"{head}\n{tail}"


def parse_output(record: Evidence) -> list[Fact]:
    """How much was printed, and the known lines in it; lines of a launcher's output belong to
    the ranks that their prefixes name.
    """
    data = record.data
    stream, role = fields.text(data, "stream"), record.subject.role or "rank"
    last_at = fields.number(data, "last_at")
    text = whole_text(record)
    output = Output(
        evidence=(record.id,),
        cell=record.cell,
        rank=record.subject.rank,
        stream=stream,
        bytes=fields.whole(data, "bytes") or 0,
        cut_bytes=fields.whole(data, "cut_bytes") or 0,
        tail=text[-TAIL_CHARACTERS:],
        first_at=fields.number(data, "first_at"),
        last_at=last_at,
        role=role,
        file=record.files[0] if record.files else "",
        silent_s=fields.number(data, "silent_s"),
    )
    found: list[Fact] = [output]
    for named, lines in split_ranks(text, shared=record.subject.rank is None).items():
        rank = record.subject.rank if named is None else named
        base: dict[str, Any] = {
            "evidence": (record.id,),
            "cell": record.cell,
            "rank": rank,
            "stream": stream,
            "at": last_at,
            "role": role,
        }
        own = "\n".join(lines)
        live = bool(fields.text(data, "path"))  # only files of live jobs are named
        if live and (pace := pace_of(lines)) is not None:
            found.append(PrintedPace((record.id,), record.cell, rank, *pace))
        fresh = {hit.signature.id for hit in find(_since_last_step(lines), stream)} if live else ()
        found += [
            LogEvent(
                **base,
                lived_through=live and hit.signature.id not in fresh,
                signature=hit.signature.id,
                event=hit.signature.shows,
                line=hit.line[:LINE_CHARACTERS],
                count=hit.count,
                captured=hit.captured,
                echo=hit.signature.echo,
                fatal=hit.signature.means == "fatal",
            )
            for hit in find(own, stream)
        ]
        found += [
            LogEvent(
                **base,
                signature="torchrun-failed-rank",
                event="torchrun-failed-rank",
                line=failed.line[:LINE_CHARACTERS],
                captured=failed.captured,
            )
            for failed in torchrun_report.failures(own)
        ]
    return found


def _since_last_step(lines: Sequence[str]) -> str:
    """What was printed after the last step, without tracebacks."""
    begin = next(
        (place + 1 for place in reversed(range(len(lines))) if steps_printed(lines[place])), 0
    )
    rest = list(lines[begin:])
    for printed in parse_tracebacks(rest):
        rest[printed.begins : printed.ends + 1] = [""] * (printed.ends + 1 - printed.begins)
    return "\n".join(rest)
