"""JSON: the whole report as `trainprobe.report/1`, or findings as `trainprobe.lint/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainprobe.report.format import Format, Layout, of_reports

if TYPE_CHECKING:
    from trainprobe.lint.output import LintResult
    from trainprobe.model.diagnosis import Report


def _report(report: Report, _: Layout) -> str:
    from trainprobe.report.json_report import report_text

    return report_text(report)


def _findings(result: LintResult, _: Layout) -> str:
    from trainprobe.lint.output import as_json

    return as_json(result)


FORMAT = Format(
    name="json",
    title="everything, for programs",
    ending=".json",
    renders={**of_reports(_report), "findings": _findings},
)
