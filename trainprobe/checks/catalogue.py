"""Reads catalogue.yaml, beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from trainprobe.shipped import shipped

State = Literal["ok", "warn", "fail", "skip", "unknown"]
Severity = Literal["blocker", "degraded", "warning", "info"]
Who = Literal["user", "admin"]
STATES: tuple[State, ...] = ("ok", "warn", "fail", "skip", "unknown")
"""`skip`: it does not apply here, with the reason. `unknown`: it could not be measured, which is
no pass.
"""
SEVERITIES: tuple[Severity, ...] = ("blocker", "degraded", "warning", "info")
BUDGETS = ("quick", "standard", "deep")
LONGEST_ID = 200
SLOTS = ("step", "prolog", "epilog", "healthcheck", "taskprolog")


@dataclass(frozen=True)
class CheckSpec:
    """One check.

    `stage` is 0 to 9: readiness begins at the launch plan and ends at the data. `severity` is what
    a failure means: with a blocker the job must not start, with degraded it starts and is slow or
    fragile; a warning never fails, and info is only recorded. `who` must act. `threshold` is shown
    as text, with its
    `source`. `budget` is the smallest in which it is made, `slots` where it may be made; `program`
    is the check program, "" for what is compared between nodes. `shared` says that all nodes must
    agree on its value. `illness` is the cause that a failure shows, "" where it shows none.
    """

    id: str
    stage: int
    title: str
    severity: Severity
    who: Who
    threshold: str = ""
    source: str = ""
    fix: str = ""
    budget: str = "quick"
    slots: tuple[str, ...] = ("step",)
    program: str = ""
    shared: bool = False
    illness: str = ""


@cache
def catalogue() -> Mapping[str, CheckSpec]:
    """Return every check by id. A prefix such as `fs.space` stands for all checks that one
    program makes of several places.
    """
    rows: Any = shipped(__package__, "catalogue.yaml")
    return MappingProxyType({row["id"]: _spec(row) for row in rows})


def spec_of(check: str) -> CheckSpec | None:
    """Return the row of a check; of `fs.space:/data` and `env.NAME` that of `fs.space` and
    `env`. A node may have told any name, of any length.
    """
    rows = catalogue()
    name = check[:LONGEST_ID]
    while name and name not in rows:
        name = name[: max(name.rfind("."), name.rfind(":"), 0)]
    return rows.get(name)


def _spec(row: Mapping[str, Any]) -> CheckSpec:
    return CheckSpec(**{**row, "slots": tuple(row.get("slots", ("step",)))})
