"""Markdown for an issue, a pull request or a chat: the answer first, the whole text folded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainprobe.report.format import Format, Layout, of_reports

if TYPE_CHECKING:
    from trainprobe.lint.model import Finding
    from trainprobe.lint.output import LintResult
    from trainprobe.model.diagnosis import Fix, PlacedCause, Report

_MARKUP = re.compile(r"([\\`*_\[\]<>|~#])")


def _report(report: Report, _: Layout) -> str:
    from trainprobe.report.lines import plain
    from trainprobe.report.text import first_causes, headline, text_of

    says = " ".join(plain(line) for line in headline(report))
    verdict, _dot, rest = says.partition(". ")
    parts = [f"**{_text(verdict.rstrip('.'))}.** {_text(rest)}".rstrip()]
    for place, cause in enumerate(first_causes(report), start=1):
        parts += _cause(cause, place)
    return "\n\n".join([*parts, _folded(text_of(report))]) + "\n"


def _cause(cause: PlacedCause, place: int) -> list[str]:
    from trainprobe.report.cause_section import heading, how_sure

    parts = [
        f"### {place}. {_text(heading(cause))} ({how_sure(cause)})",
        _text(cause.summary or cause.title),
    ]
    because = sorted(cause.because, key=lambda weighing: -weighing.points)
    if because:
        parts.append("\n".join(f"- {one.points:+d} {_text(one.says)}" for one in because))
    return [*parts, *(_fix(fix) for fix in cause.fixes)]


def _fix(fix: Fix) -> str:
    from trainprobe.report.cause_section import who_and_risk

    steps = "\n".join([*fix.steps, *([f"# verify: {fix.verify}"] if fix.verify else [])])
    title = f"**Do:** {_text(fix.title)} ({who_and_risk(fix)})"
    return f"{title}\n\n{_fenced(steps, '')}" if steps else title


def _findings(result: LintResult, _: Layout) -> str:
    from trainprobe.lint.output import as_lines

    lines = as_lines(result)
    parts = [f"**{_text(lines[-1])}**"]
    if result.findings:
        rows = [_row(finding) for finding in result.findings]
        parts.append("\n".join(["| where | what | do |", "|---|---|---|", *rows]))
    return "\n\n".join([*parts, _folded("\n".join(lines))]) + "\n"


def _row(finding: Finding) -> str:
    from trainprobe.lint.output import printable

    where = f"{finding.file}:{finding.line}"
    cells = (where, f"{finding.id}: {finding.says}", finding.fix.says if finding.fix else "")
    return f"| {' | '.join(_text(printable(cell)) for cell in cells)} |"


def _text(says: str) -> str:
    """Names such as `rank_0` and placeholders such as `<PID>` are no markup."""
    from trainprobe.report.phrases import clean

    return _MARKUP.sub(r"\\\1", clean(says))


def _folded(text: str) -> str:
    summary = "<summary>The whole report</summary>"
    return f"<details>{summary}\n\n{_fenced(text, 'text')}\n\n</details>"


def _fenced(text: str, language: str) -> str:
    """Return a code block that nothing in `text` can end."""
    from trainprobe.report.phrases import clean

    lines = [" " * (len(line) - len(line.lstrip())) + clean(line) for line in text.splitlines()]
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return "\n".join([f"{fence}{language}", *lines, fence])


FORMAT = Format(
    name="markdown",
    title="for an issue or a pull request: the answer first, the whole text folded",
    ending=".md",
    renders={**of_reports(_report), "findings": _findings},
)
