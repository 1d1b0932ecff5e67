"""HTML: one page without scripts or links to elsewhere, with the words of the text."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from trainprobe.report.format import Format, Layout, of_reports
from trainprobe.report.lines import Line, Span, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainprobe.lint.output import LintResult
    from trainprobe.model.diagnosis import Report

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 1.5rem; }}
pre {{ font: 0.9rem/1.45 ui-monospace, monospace; white-space: pre-wrap; tab-size: 4; }}
.strong {{ font-weight: bold; }}
.faint {{ opacity: 0.65; }}
.bad {{ color: light-dark(#b00020, #ff7a85); font-weight: bold; }}
.warn {{ color: light-dark(#8a5a00, #f0b95a); font-weight: bold; }}
.good {{ color: light-dark(#1b6e2d, #79d18c); font-weight: bold; }}
.command {{ color: light-dark(#00558c, #7cc4ff); }}
</style>
</head>
<body>
<pre>
{body}</pre>
</body>
</html>
"""


def _report(report: Report, _: Layout) -> str:
    from trainprobe.report.text import headline, report_lines

    return _page(plain(headline(report)[0]), report_lines(report))


def _findings(result: LintResult, _: Layout) -> str:
    from trainprobe.lint.output import as_lines

    return _page("trainprobe lint", [(Span(line),) for line in as_lines(result)])


def _page(title: str, lines: Sequence[Line]) -> str:
    body = "".join("".join(map(_element, line)).rstrip() + "\n" for line in lines)
    return PAGE.format(title=html.escape(title), body=body)


def _element(piece: Span) -> str:
    text = html.escape(piece.text)
    return text if piece.style == "plain" else f'<span class="{piece.style}">{text}</span>'


FORMAT = Format(
    name="html",
    title="a page for a browser: the text, with colour",
    ending=".html",
    renders={**of_reports(_report), "findings": _findings},
)
