"""The model's stress test in lines: how many suites passed, then each suite with its outcome, its
time, and what it tried or found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainprobe.model.diagnosis import LadderRow
from trainprobe.report.extra import listed, rows_of, text_of
from trainprobe.report.lines import Line, Span, Style, padded, span, wrapped, wrapped_behind
from trainprobe.report.phrases import clean, columns, duration

BESIDE = ("evaluation", "ranks")
"""Rows that are not suites: whether eval() is repeatable, and one rank against several."""
STYLES: Mapping[str, Style] = {
    "passed": "good",
    "failed": "bad",
    "skipped": "faint",
    "not_measured": "warn",
}
_MOST = 20


def suites_of(row: LadderRow) -> tuple[Mapping[str, Any], ...]:
    """The suites in a row of the ladder; none where its probe has no suites, or where they cannot
    be read.
    """
    rows = rows_of({"suites": listed(row.extra, "suites")[:_MOST]}, "suites")
    return tuple(
        suite
        for suite in rows
        if isinstance(suite.get("name"), str) and suite.get("outcome") in STYLES
    )


def suites_say(row: LadderRow) -> str:
    """`7/7 suites passed`, or how many passed with the names of the others: failed, not answered,
    or not asked, for want of a question; empty without suites.
    """
    suites = [suite for suite in suites_of(row) if suite["name"] not in BESIDE]
    if not suites:
        return ""
    passed = sum(suite["outcome"] == "passed" for suite in suites)
    others = [
        f"{', '.join(names)} {how}"
        for outcome, how in (
            ("failed", "failed"),
            ("not_measured", "did not answer"),
            ("skipped", "not asked"),
        )
        if (names := [suite["name"] for suite in suites if suite["outcome"] == outcome])
    ]
    return f"{passed}/{len(suites)} suites passed" + (f"; {'; '.join(others)}" if others else "")


def suite_lines(rows: Sequence[LadderRow], width: int) -> list[Line]:
    """Return the suites of every stress test of a model as lines of at most `width` columns."""
    lines: list[Line] = []
    for row in rows:
        suites = suites_of(row)
        if not suites:
            continue
        lines += wrapped([span(row.probe), span(suites_say(row), "strong")], width, first=" ")
        names = max(columns(clean(suite["name"])) for suite in suites)
        outcomes = max(len(_word(suite)) for suite in suites)
        for suite in suites:
            took = suite.get("took_s")
            time = duration(float(took)) if isinstance(took, (int, float)) and took > 0 else ""
            start = (
                Span(f"   {padded(clean(suite['name']), names)}  "),
                Span(f"{_word(suite):<{outcomes}}", STYLES[suite["outcome"]]),
                Span(f"{time:>9}  "),
            )
            lines += wrapped_behind(start, [span(text_of(suite, "says"), "faint")], width)
    return lines


def _word(suite: Mapping[str, Any]) -> str:
    return "no answer" if suite["outcome"] == "not_measured" else str(suite["outcome"])
