"""The model's stress test in lines: each suite with its outcome, its time and what it tried or
found, below how many passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainprobe.model.diagnosis import LadderRow
from trainprobe.report.lines import Line, Span, Style, span, wrapped
from trainprobe.report.phrases import clean, columns, duration

BESIDE = ("evaluation", "ranks")
"""Lines that are no suites: whether eval() is still, and one rank against several."""
STYLES: Mapping[str, Style] = {
    "passed": "good",
    "failed": "bad",
    "skipped": "faint",
    "not_measured": "warn",
}
_MOST = 20


def suites_of(row: LadderRow) -> tuple[Mapping[str, Any], ...]:
    """The lines of the suites that stand in a row of the ladder; none where its probe has no
    suites, or where they cannot be read.
    """
    found = row.extra.get("suites")
    rows = found if isinstance(found, (list, tuple)) else ()
    return tuple(
        one
        for one in rows[:_MOST]
        if isinstance(one, Mapping)
        and isinstance(one.get("name"), str)
        and one.get("outcome") in STYLES
    )


def suites_say(row: LadderRow) -> str:
    """`7/7 suites passed`, or how many did, with those that did not: failed, not answered, or
    not for this model; empty without suites.
    """
    suites = [one for one in suites_of(row) if one["name"] not in BESIDE]
    if not suites:
        return ""
    passed = sum(one["outcome"] == "passed" for one in suites)
    others = [
        f"{', '.join(names)} {how}"
        for outcome, how in (
            ("failed", "failed"),
            ("not_measured", "did not answer"),
            ("skipped", "not for this model"),
        )
        if (names := [one["name"] for one in suites if one["outcome"] == outcome])
    ]
    return f"{passed}/{len(suites)} suites passed" + (f"; {'; '.join(others)}" if others else "")


def suite_lines(rows: Sequence[LadderRow], width: int) -> list[Line]:
    """Return the suites of every stress test of a model as lines of at most `width` columns;
    none where there was none.
    """
    lines: list[Line] = []
    for row in rows:
        suites = suites_of(row)
        if not suites:
            continue
        lines += wrapped([span(row.probe), span(suites_say(row), "strong")], width, first=" ")
        names = max(columns(clean(one["name"])) for one in suites)
        outcomes = max(len(_word(one)) for one in suites)
        for one in suites:
            took = one.get("took_s")
            time = duration(float(took)) if isinstance(took, (int, float)) and took > 0 else ""
            name = clean(one["name"])
            start = (
                Span(f"   {name}{' ' * (names - columns(name))}  "),
                Span(f"{_word(one):<{outcomes}}", STYLES[one["outcome"]]),
                Span(f"{time:>9}  "),
            )
            says = one.get("says")
            first, *rest = wrapped(
                [span(says if isinstance(says, str) else "", "faint")],
                width,
                first=" " * sum(columns(piece.text) for piece in start),
            )
            lines += [(*start, *first[1:]), *rest]
    return lines


def _word(one: Mapping[str, Any]) -> str:
    return "no answer" if one["outcome"] == "not_measured" else str(one["outcome"])
