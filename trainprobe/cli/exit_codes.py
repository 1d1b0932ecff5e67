"""What the exit code says: a contract (docs/exits.md is generated from this table)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainprobe.model.diagnosis import Report, Verdict

HEALTHY, ILL, USAGE, UNDETERMINED, NODES, FAULT, INTERRUPTED = 0, 1, 2, 3, 10, 70, 130
ENDED, REQUEUE, CANNOT_RUN, NOT_FOUND = 74, 75, 126, 127

MEANINGS: dict[int, str] = {
    HEALTHY: (
        "healthy: everything that could have changed the verdict was looked at, and nothing was"
        " found"
    ),
    ILL: (
        "hung, crashed, slow or at-risk, whether the cause is named or not; of `ready`: something"
        " must be put right first, and leaving nodes out would not help"
    ),
    USAGE: (
        "the command line, the configuration file or a path given cannot be used; nothing was"
        " started"
    ),
    UNDETERMINED: "undetermined: something that could have changed the verdict could not be seen",
    NODES: (
        "of `ready` alone: nodes or links are at fault and named; without these nodes the rest is"
        " ready, as far as there was time to see, and the exclude file says so"
    ),
    FAULT: "a fault of trainprobe itself",
    ENDED: "of `run --on-hang=kill` alone: the job hung and was ended",
    REQUEUE: (
        "of `run --on-hang=requeue` alone: the job hung and was ended, and is to be started again"
        " (EX_TEMPFAIL of sysexits.h)"
    ),
    CANNOT_RUN: "of `run` alone: the command cannot be run",
    NOT_FOUND: "of `run` alone: the command was not found",
    INTERRUPTED: (
        "interrupted with Ctrl-C; the report of what was learnt until then was written before"
    ),
}


def code_of(verdict: Verdict, *, conclusive: bool, interrupted: bool = False) -> int:
    """Return the exit code of a command that came to `verdict`. Health that is not conclusive is
    not claimed.
    """
    if interrupted:
        return INTERRUPTED
    if verdict == "healthy":
        return HEALTHY if conclusive else UNDETERMINED
    return UNDETERMINED if verdict == "undetermined" else ILL


def code_of_report(report: Report) -> int:
    """Return the exit code of the command that gathered for `report`."""
    interrupted = report.extra.get("interrupted") is True
    return code_of(report.verdict, conclusive=report.conclusive, interrupted=interrupted)


def ready_code_of(report: Report, *, strict: bool = False, inconclusive: str = "") -> int:
    """Return the exit code of `ready`: `strict` counts warnings as faults, `inconclusive` is
    `pass` or `fail` for what could not be determined.
    """
    code = code_of_report(report)
    readiness = report.extra.get("readiness")
    if (
        code == ILL
        and isinstance(readiness, Mapping)
        and readiness.get("exclude")
        and not readiness.get("shared")
    ):
        return NODES
    if code == HEALTHY and strict and report.warnings:
        return ILL
    if code == UNDETERMINED and inconclusive:
        return HEALTHY if inconclusive == "pass" else ILL
    return code
