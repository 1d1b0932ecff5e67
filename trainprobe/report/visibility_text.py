"""What can be seen from here, as text and as JSON."""

from __future__ import annotations

import json

from trainprobe.model.codec import to_json
from trainprobe.model.visibility import VisibilityLine, VisibilityReport
from trainprobe.report.lines import Line, Span, Style, padded, span, typed, wrapped
from trainprobe.report.phrases import columns
from trainprobe.report.terminal import rendered

WORDS: dict[str, tuple[str, Style]] = {
    "yes": ("yes", "good"),
    "part": ("part", "warn"),
    "no": ("no", "bad"),
    "unused": ("-", "faint"),
}
NARROWEST, WIDEST = 60, 100
_TITLES_UP_TO = 80  # below that many columns a title has a line of its own


def visibility_text(report: VisibilityReport, width: int = WIDEST, *, colour: bool = False) -> str:
    """Return the report as lines, the remedies as commands below what they remedy."""
    width = max(NARROWEST, min(width, WIDEST))
    lines: list[Line] = [
        (span(f"trainprobe {report.version} on {report.host}, as {report.user}", "faint"),)
    ]
    wide = width >= _TITLES_UP_TO
    titles = max((columns(line.title) for line in report.lines), default=0)
    for line in report.lines:
        lines += _line(line, width, titles if wide else 0)
    return rendered([*lines, (Span(""),), *_closing(report, width)], colour=colour)


def visibility_json(report: VisibilityReport) -> str:
    """Return `trainprobe.doctor/1`, with a final newline."""
    return json.dumps(to_json(report), indent=2) + "\n"


def _line(line: VisibilityLine, width: int, titles: int) -> list[Line]:
    word, style = WORDS[line.seen]
    head: Line = (Span(" "), Span(f"{word:<5}", style), Span(padded(line.title, titles), "strong"))
    indent = " " * (8 + titles) if titles else " " * 6
    if titles:
        first, *rest = wrapped([span(line.says)], width, first=indent)
        lines: list[Line] = [(*head, Span("  "), *first[1:]), *rest]
    else:
        lines = [head, *wrapped([span(line.says)], width, first=indent)]
    if line.remedy:
        first, *rest = typed(line.remedy, width, indent=f"{indent}    ")
        lines += [(Span(f"{indent}do  ", "faint"), *first[1:]), *rest]
    return lines


def _closing(report: VisibilityReport, width: int) -> list[Line]:
    stacks = next((line for line in report.lines if line.id == "stacks"), None)
    if stacks is None or stacks.seen == "yes":
        return wrapped([span("A job that hangs here can be looked at:"), _command()], width)
    says = "Without stacks a hang is told by what /proc alone shows, and many causes stay open."
    return wrapped([span(says, "warn")], width)


def _command() -> Span:
    return span("trainprobe attach", "command")
