"""Known lines in output, found by the patterns in signatures/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class LogEvent(Fact):
    """`signature` is the pattern's id, `event` what it shows (fd-limit, port-in-use …), `line` the first such line, `count` how many.

    `captured` holds the pattern's named groups of that first line. `echo` is true for what only repeats another rank's end.
    `role` says whose output it was: rank or launcher.
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


@dataclass(frozen=True)
class Output(Fact):
    """How much a process printed. `first_at` and `last_at` are Unix seconds, None where nothing came."""

    stream: str = ""
    bytes: int = 0
    cut_bytes: int = 0
    tail: str = ""
    first_at: float | None = None
    last_at: float | None = None
    role: str = "rank"
    file: str = ""
