"""Plain text, the canonical form: what a person reads on a terminal or in a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainprobe.report.format import Format, Layout, of_reports

if TYPE_CHECKING:
    from trainprobe.lint.output import LintResult
    from trainprobe.model.diagnosis import Report


def _report(report: Report, layout: Layout) -> str:
    from trainprobe.report.terminal import rendered
    from trainprobe.report.text import quiet_lines, report_lines

    if layout.quiet:
        lines = quiet_lines(report, layout.width)
    else:
        lines = report_lines(report, layout.width, verbose=layout.verbose)
    return rendered(lines, colour=layout.colour)


def _findings(result: LintResult, layout: Layout) -> str:
    from trainprobe.lint.output import as_lines

    lines = as_lines(result, colour=layout.colour, quiet=layout.quiet)
    return "".join(f"{line}\n" for line in lines)


FORMAT = Format(
    name="text",
    title="plain text for people, with colour on a terminal",
    ending=".txt",
    renders={**of_reports(_report), "findings": _findings},
)
