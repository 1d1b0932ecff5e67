"""Markdown for an issue, a pull request or a chat: the answer first, the whole text folded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainprobe.report.format import Format, Layout, of_reports

if TYPE_CHECKING:
    from trainprobe.lint.model import Finding
    from trainprobe.lint.output import LintResult
    from trainprobe.model.diagnosis import Fix, PlacedCause, Report

LINES_CAP = 60
LEAST_FOLDED = 16  # lines that the whole text has at least, with what is around it
LINES_AROUND = 9
CAUSES_CAP = 3
REASONS_CAP = 4
SENTENCES_CAP, VALUES_CAP = 10, 5
WIDTH = 100
_MARKUP = re.compile(r"([\\`*_\[\]<>|~#])")


def _report(report: Report, _: Layout) -> str:
    """Return the answer, what to do, and folded below it why and the whole text, as much of it as
    a ticket bears.
    """
    from trainprobe.report.lines import plain
    from trainprobe.report.text import first_causes, headline

    says = " ".join(plain(line) for line in headline(report))
    verdict, _dot, rest = says.partition(". ")
    parts = [f"**{_text(verdict.rstrip('.'))}.** {_text(rest)}".rstrip()]
    parts += _since(report)
    causes = first_causes(report)
    for place, cause in enumerate(causes[:CAUSES_CAP], start=1):
        parts += _cause(report, cause, place, whole=place == 1)
    if len(causes) > CAUSES_CAP:
        parts.append(f"and {len(causes) - CAUSES_CAP} more")
    answer = "\n\n".join(_within(parts, LINES_CAP - LEAST_FOLDED))
    room = LINES_CAP - answer.count("\n") - LINES_AROUND
    return f"{answer}\n\n{_folded(_begun(report, room))}\n"


def _since(report: Report) -> list[str]:
    """What changed since an earlier run, where the report was compared with one."""
    from trainprobe.report.comparison_section import against_of

    found = against_of(report)
    if found is None:
        return []
    says = "\n".join(f"- {_text(one)}" for one in found.sentences[:SENTENCES_CAP])
    rows = [
        f"| {' | '.join(_text(cell) for cell in (row.name, row.before, row.after))} |"
        for row in found.changed_values[:VALUES_CAP]
    ]
    table = "\n".join(["| | then | now |", "|---|---|---|", *rows])
    return [f"### Since {_text(found.since)}", says, *([table] if rows else [])]


def _within(parts: list[str], most: int) -> list[str]:
    """As many of the parts as fit into `most` lines; at least the headline."""
    kept, used = parts[:1], parts[0].count("\n") + 1
    for part in parts[1:]:
        used += part.count("\n") + 2
        if used > most:
            break
        kept.append(part)
    return kept


def _begun(report: Report, room: int) -> str:
    """The text, or its beginning with the command that prints all of it."""
    from trainprobe.report.text import text_of

    lines = text_of(report).splitlines()
    if len(lines) > room:
        case = report.case or "CASE"
        rest = f"… and {len(lines) - room + 1} more lines: trainprobe explain {case} --verbose"
        lines = [*lines[: room - 1], rest]
    return "\n".join(lines)


def _cause(report: Report, cause: PlacedCause, place: int, *, whole: bool) -> list[str]:
    from trainprobe.report.cause_section import heading, how_sure
    from trainprobe.report.excerpt_section import excerpt_lines
    from trainprobe.report.lines import plain

    parts = [
        f"### {place}. {_text(heading(cause))} ({how_sure(cause)})",
        _text(cause.summary or cause.title),
    ]
    if not whole:
        return parts
    source = "\n".join(plain(line)[4:] for line in excerpt_lines(report, cause.group, WIDTH))
    parts += [_fenced(source, "")] if source else []
    parts += [_fix(fix) for fix in cause.fixes]
    because = sorted(cause.because, key=lambda weighing: -weighing.points)[:REASONS_CAP]
    if because:
        reasons = "\n".join(f"- {_text(one.says)}" for one in because)
        parts.append(f"<details><summary>Why</summary>\n\n{reasons}\n\n</details>")
    return parts


def _fix(fix: Fix) -> str:
    from trainprobe.report.cause_section import who_and_risk
    from trainprobe.report.lines import as_typed

    steps = "\n".join(as_typed(step) for step in fix.steps)
    who = who_and_risk(fix)
    title = f"**Do:** {_text(fix.title)}{f' ({who})' if who else ''}"
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
