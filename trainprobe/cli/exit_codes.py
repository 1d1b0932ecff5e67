"""What the exit code says: a contract (docs/exits.md is generated from this table)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainprobe.model.diagnosis import Verdict

HEALTHY, ILL, USAGE, UNDETERMINED, FAULT, INTERRUPTED = 0, 1, 2, 3, 70, 130

MEANINGS: dict[int, str] = {
    HEALTHY: "healthy: everything that could have changed the verdict was looked at, and nothing was found",
    ILL: "hung, crashed, slow or at-risk, whether the cause is named or not",
    USAGE: "the command line, the configuration file or a path given cannot be used; nothing was started",
    UNDETERMINED: "undetermined: something that could have changed the verdict could not be seen",
    FAULT: "a fault of trainprobe itself",
    INTERRUPTED: "interrupted with Ctrl-C; the report of what was learnt until then was written before",
}


def code_of(verdict: Verdict, *, conclusive: bool, interrupted: bool = False) -> int:
    """Return the exit code of a command that came to `verdict`. Health that is not conclusive is not claimed."""
    if interrupted:
        return INTERRUPTED
    if verdict == "healthy":
        return HEALTHY if conclusive else UNDETERMINED
    return UNDETERMINED if verdict == "undetermined" else ILL
