"""The exceptions that ended ranks, told apart from the echoes of another rank's end."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame


@dataclass(frozen=True)
class RankException(Fact):
    """One uncaught exception of one process.

    `type` and `message` are those of the exception that ended it. Where that one only wraps another (a DataLoader worker's, an
    explicit `raise … from`), `root_type` and `root_message` are the first of the chain, and `frames` are the first one's,
    outermost first. `echo` is true for what only repeats another rank's death or absence; `echo_of` says which kind.
    `module_importing` is the module whose import was under way. `worker` is the DataLoader worker that it happened in.
    `source` is witness, error-file or output: the best of those that showed it.
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
