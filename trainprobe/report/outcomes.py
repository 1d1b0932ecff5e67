"""A report as rows that pass or fail. JUnit, Prometheus and Nagios use these rows, so that they
cannot disagree with each other or with the verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from trainprobe.model.diagnosis import LadderRow, PlacedCause, Report, RungOutcome
from trainprobe.report.extra import listed, rows_of
from trainprobe.report.phrases import clean

State = Literal["ok", "warn", "fail", "skip", "unknown"]
STATES: tuple[State, ...] = ("ok", "warn", "fail", "skip", "unknown")
VERDICT = "verdict"
LONGEST = 2000
_LONGEST_NAME = 200
_PLAIN_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,12})?(?:e[+-]?[0-9]{1,3})?", re.ASCII)
_OF_RUNG: dict[RungOutcome, State] = {
    "passed": "ok",
    "failed": "fail",
    "timed_out": "fail",
    "crashed": "fail",
    "skipped": "skip",
    "not_measured": "unknown",
}


@dataclass(frozen=True)
class Outcome:
    """One check on one host, one rung, one cause, or the verdict itself, which every report has,
    first.

    `spoils` says that the report cannot be a pass with it: a failure with state `fail`, not
    determined with `unknown`. A report is a pass (exit 0) exactly where no row spoils. `host` is ""
    where it is no host's. `value` is a number where one was measured, `took_s` in seconds.
    """

    id: str
    state: State
    spoils: bool
    host: str = ""
    kind: Literal["verdict", "check", "rung", "cause"] = "check"
    severity: str = ""
    who: str = ""
    says: str = ""
    fix: str = ""
    threshold: str = ""
    value: float | None = None
    took_s: float = 0.0


def outcomes(report: Report) -> tuple[Outcome, ...]:
    """Return the verdict's row, then one for each check and host, rung and cause."""
    verdict = verdict_row(report)
    checks = list(_checks(report, spoilt=verdict.spoils))
    rows = [verdict, *checks]
    if not checks:  # the causes of `ready` repeat its checks
        firsts = _first_of_groups(report.causes)
        rows += [row for cause in firsts for row in _of_cause(cause, spoilt=verdict.spoils)]
    rows += [_of_rung(row, spoilt=verdict.spoils) for row in report.ladder]
    kept: dict[tuple[str, str, str], Outcome] = {}
    for row in rows:  # CI systems and Prometheus take one row of each name: here the worse one
        other = kept.setdefault((row.kind, row.id, row.host), row)
        if worst((row.state, other.state)) != other.state:
            kept[row.kind, row.id, row.host] = row
    return tuple(kept.values())


def passed(report: Report) -> bool:
    """Is this a pass: healthy, and everything seen that could have changed it?"""
    return report.verdict == "healthy" and report.conclusive


def verdict_row(report: Report) -> Outcome:
    undecided = report.verdict in ("undetermined", "healthy") and not passed(report)
    state: State = "ok" if passed(report) else "unknown" if undecided else "fail"
    says = report.says or " ".join(suspect.says for suspect in report.suspects)
    fix = next((fix for cause in report.causes[:1] for fix in cause.fixes), None)
    return Outcome(
        VERDICT,
        state,
        state != "ok",
        kind="verdict",
        who=fix.who if fix else "",
        says=_text(says),
        fix=_text((fix.steps[0] if fix.steps else fix.title) if fix else ""),
        took_s=_seconds(report.looked_s),
    )


def check_rows(report: Report) -> list[Mapping[str, Any]]:
    """Return the rows of the readiness checks, or none: the extra part of a report may hold
    anything.
    """
    return [row for row in rows_of(_readiness(report), "checks") if _name(row.get("id"))]


def left_out(report: Report) -> tuple[str, ...]:
    """Return the nodes that a readiness report names to be left out."""
    return tuple(_name(name) for name in listed(_readiness(report), "exclude"))


def _readiness(report: Report) -> Mapping[str, Any]:
    readiness = report.extra.get("readiness")
    return readiness if isinstance(readiness, Mapping) else {}


def worst(states: Iterable[State]) -> State:
    """Return the state that counts most: fail, then unknown, warn, ok, and skip where there is
    nothing else.
    """
    order: tuple[State, ...] = ("fail", "unknown", "warn", "ok", "skip")
    found = set(states)
    return next((state for state in order if state in found), "skip")


def _checks(report: Report, *, spoilt: bool) -> Iterable[Outcome]:
    for row in check_rows(report):
        state = row.get("state")
        known: State = next((name for name in STATES if name == state), "unknown")
        severity = _name(row.get("severity"))
        spoils = spoilt and (
            (known == "fail" and severity in ("blocker", "degraded"))
            or (known == "unknown" and severity == "blocker")
        )
        hosts = listed(row, "hosts") or [""]
        outcome = Outcome(
            _name(row["id"]),
            known,
            spoils,
            severity=severity,
            who=_name(row.get("who")),
            says=_text(row.get("says")),
            fix=_text(row.get("fix")),
            threshold=_text(row.get("threshold")),
            value=_number(row.get("value")) if len(hosts) == 1 else None,  # else the first host's
            took_s=_seconds(row.get("took_s")),
        )
        yield from (replace(outcome, host=_name(host)) for host in hosts)


def _first_of_groups(causes: Iterable[PlacedCause]) -> list[PlacedCause]:
    firsts: dict[int, PlacedCause] = {}
    for cause in causes:
        firsts.setdefault(cause.group, cause)
    return list(firsts.values())


def _of_cause(cause: PlacedCause, *, spoilt: bool) -> Iterable[Outcome]:
    fix = cause.fixes[0] if cause.fixes else None
    typed = " ".join((fix.title, *fix.steps[:1])) if fix else ""
    for host in cause.hosts or ("",):
        yield Outcome(
            _name(cause.id),
            "fail" if spoilt else "warn",
            spoilt,
            _name(host),
            "cause",
            who=fix.who if fix else "",
            says=_text(cause.summary or cause.title),
            fix=_text(typed),
        )


def _of_rung(row: LadderRow, *, spoilt: bool) -> Outcome:
    """In a report that passed a rung spoils nothing, whatever its own outcome, such as a knob that
    was tried.
    """
    state = _OF_RUNG[row.outcome]
    if not spoilt and state in ("fail", "unknown"):
        state = "warn" if state == "fail" else "skip"
    says = row.says or ("" if state in ("ok", "skip") else row.outcome.replace("_", " "))
    return Outcome(
        _name(row.cell or row.probe),
        state,
        state in ("fail", "unknown"),
        kind="rung",
        says=_text(says),
        took_s=_seconds(row.took_s),
    )


def _name(given: object) -> str:
    return clean(given[:_LONGEST_NAME]) if isinstance(given, str) else ""


def _text(given: object) -> str:
    if not isinstance(given, str):
        return ""
    return clean(given if len(given) <= LONGEST else f"{given[:LONGEST]}…")


def _number(given: object) -> float | None:
    """A number, or a text that holds only a number: checks report their values as text."""
    if isinstance(given, bool) or not isinstance(given, (int, float, str)):
        return None
    if isinstance(given, str) and not _PLAIN_NUMBER.fullmatch(given):
        return None
    try:
        value = float(given)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def _seconds(given: object) -> float:
    return max(0.0, _number(given) or 0.0)
