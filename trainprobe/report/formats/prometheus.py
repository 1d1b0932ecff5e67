"""A report in Prometheus' text format 0.0.4, for the textfile collector of node_exporter: a gauge
for each thing, no timestamps, each name once.

The names have the form that `promtool check metrics` asks for: a prefix, base units, no suffix that
belongs to counters and histograms.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trainprobe.model.diagnosis import Report, Verdict
from trainprobe.report.format import Format, Layout, of_reports
from trainprobe.report.outcomes import STATES, Outcome, left_out, outcomes, passed

if TYPE_CHECKING:
    from trainprobe.lint.output import LintResult

VERDICTS: tuple[Verdict, ...] = typing.get_args(Verdict)
NUMBER_OF = {"ok": 0, "warn": 1, "fail": 2, "unknown": 3, "skip": -1}
"""The state of a check as a number, in the order of Nagios' codes."""


_Samples = Sequence[tuple[Mapping[str, str], float]]


def _report(report: Report, layout: Layout) -> str:
    """Return `report` as metrics, with a final newline."""
    rows = outcomes(report)
    checks = [row for row in rows if row.kind in ("check", "rung")]
    causes = [row for row in rows if row.kind == "cause"]
    spoils = {row.state for row in rows if row.spoils}
    metrics: dict[str, tuple[str, _Samples]] = {
        "info": (
            "Version and command that wrote this.",
            [({"version": report.tool.version, "command": report.command}, 1)],
        ),
        "verdict": (
            "1 for the verdict of the last run, 0 for the others.",
            [({"verdict": verdict}, verdict == report.verdict) for verdict in VERDICTS],
        ),
        "pass": (
            "1 where the last run found nothing and could see all that mattered.",
            [({}, passed(report))],
        ),
        "conclusive": (
            "1 where everything was seen that could have changed the verdict.",
            [({}, report.conclusive)],
        ),
        "failed": (
            "1 where the last run is no pass because something was found.",
            [({}, "fail" in spoils)],
        ),
        "run_seconds": ("How long the last run looked.", [({}, report.looked_s)]),
        "run_timestamp_seconds": (
            "When the last run ended, as Unix time.",
            [] if layout.ended_at is None else [({}, round(layout.ended_at, 3))],
        ),
        "checks": (
            "Checks of the last run by their state.",
            [({"state": state}, sum(row.state == state for row in checks)) for state in STATES]
            if checks
            else [],
        ),
        "check_state": (
            "0 ok, 1 warn, 2 fail, 3 not measured, -1 does not apply.",
            _first([(_labels(row), NUMBER_OF[row.state]) for row in checks]),
        ),
        "check_value": (
            "What a check measured, in its own unit.",
            _first([(_names(row), row.value) for row in checks if row.value is not None]),
        ),
        "cause": (
            "1 for the first cause of each trouble that was found.",
            _first([({"host": row.host, "cause": row.id}, 1) for row in causes]),
        ),
        "node_excluded": (
            "1 for a node that the last run names to be left out.",
            _first([({"host": host}, 1) for host in left_out(report)]),
        ),
    }
    return "".join(
        _metric(f"trainprobe_{name}", says, samples)
        for name, (says, samples) in metrics.items()
        if samples
    )


def _findings(result: LintResult, _: Layout) -> str:
    """Return the findings of lint by rule, and the files that were not read."""
    counts: dict[tuple[str, str], int] = {}
    for finding in result.findings:
        key = (finding.rule, finding.id)
        counts[key] = counts.get(key, 0) + 1
    metrics: dict[str, tuple[str, _Samples]] = {
        "lint_pass": (
            "1 where the last reading found nothing and could read all.",
            [({}, not result.findings and not result.not_read)],
        ),
        "lint_findings": (
            "Findings of the last reading by rule.",
            [({"rule": rule, "cause": cause}, many) for (rule, cause), many in counts.items()],
        ),
        "lint_files_unread": ("Files and rules that were left out.", [({}, len(result.not_read))]),
    }
    return "".join(
        _metric(f"trainprobe_{name}", says, samples)
        for name, (says, samples) in metrics.items()
        if samples
    )


def _names(row: Outcome) -> Mapping[str, str]:
    return {"host": row.host, "check": row.id}


def _labels(row: Outcome) -> Mapping[str, str]:
    return {**_names(row), "severity": row.severity, "who": row.who}


def _first(samples: _Samples) -> _Samples:
    """Keep the largest sample of the same labels, which is the worst: two samples of one name would
    make the whole file invalid.
    """
    kept: dict[tuple[tuple[str, str], ...], float] = {}
    for labels, value in samples:
        key = tuple(labels.items())
        kept[key] = max(value, kept.get(key, value))
    return [(dict(key), value) for key, value in kept.items()]


def _metric(name: str, says: str, samples: _Samples) -> str:
    rows = [f"{name}{_braced(labels)} {_shown(value)}\n" for labels, value in samples]
    return f"# HELP {name} {says}\n# TYPE {name} gauge\n{''.join(rows)}"


def _braced(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items() if text)
    return f"{{{inside}}}" if inside else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _shown(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


FORMAT = Format(
    name="prometheus",
    title="metrics for the textfile collector of node_exporter",
    ending=".prom",
    renders={**of_reports(_report), "findings": _findings},
)
