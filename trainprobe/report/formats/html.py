"""HTML: the page, one file without links to elsewhere. See `report/page/`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainprobe.report.format import Format, Layout, of_reports

if TYPE_CHECKING:
    from trainprobe.lint.output import LintResult
    from trainprobe.model.diagnosis import Report


def _report(report: Report, layout: Layout) -> str:
    from trainprobe.report.page.document import page_of
    from trainprobe.report.page.exhibits import NOTHING, exhibits_of

    records = tuple(layout.evidence())
    exhibits = exhibits_of(report, records) if records else NOTHING
    return page_of(report, exhibits)


def _findings(result: LintResult, _: Layout) -> str:
    from trainprobe.report.page.document import findings_page

    return findings_page(result)


FORMAT = Format(
    name="html",
    title="a page for a browser: the answer, drawings, and the evidence behind them",
    ending=".html",
    renders={**of_reports(_report), "findings": _findings},
)
