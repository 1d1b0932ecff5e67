"""The order of failures that logs tell of: of each rank the first thing that went wrong, told
apart from what only repeats another's end.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class LogFailure(Fact):
    """One failure: of a rank the first that is its own, or else the first echo; of lines that name
    no rank each one.

    `what` is exception, signal, event, ending or kernel. `kind` is the same for failures that are
    alike: type and message without their numbers. `says` is a clause without a subject (`raised
    KeyError: 'label'`), `where` the user's line. `echo` marks what only repeats that another rank
    is gone or late, `echo_of` says which kind. `place` orders all failures, `order` counts them
    from 0. `seen_at` is file and line.
    """

    what: str = ""
    kind: str = ""
    says: str = ""
    where: str = ""
    echo: bool = False
    echo_of: str = ""
    pid: int | None = None
    at: float | None = None
    place: int = 0
    order: int = 0
    host: str = ""
    seen_at: str = ""
    text: str = ""
