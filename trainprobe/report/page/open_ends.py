"""What followed, what was ruled out, what stayed open or could not be seen, and warnings."""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.model.diagnosis import Report
from trainprobe.model.ranks import fold_ranks, name_ranks
from trainprobe.report.page.markup import Content, Markup, element, joined

ROWS_CAP = 40


def open_ends_section(report: Report) -> Markup | None:
    """Return the lists; None where all of them are empty."""
    blocks = [
        _block("Victims", [_victims(report, place) for place in range(len(report.cascade))]),
        _block(
            "Ruled out",
            [
                joined(element("code", one.id), f" {one.why}" if one.why else None)
                for one in report.ruled_out
            ],
        ),
        _block(
            "Could not look",
            [one.would_settle for one in report.undecided if one.id == "cannot-look"],
        ),
        _block("Unexplained", report.unexplained),
        _block(
            "Warnings",
            [
                joined(one.says, element("p", one.fix, class_="faint") if one.fix else None)
                for one in report.warnings
            ],
        ),
    ]
    if not any(blocks):
        return None
    return element(
        "section",
        element("h2", "Also to know", id="also-title"),
        element("div", *blocks, class_="blocks"),
        id="also",
        aria_labelledby="also-title",
    )


def _block(title: str, items: Sequence[Content]) -> Markup | None:
    if not items:
        return None
    more = len(items) - ROWS_CAP
    return element(
        "div",
        element("h3", title),
        element(
            "ul",
            *(element("li", item) for item in items[:ROWS_CAP]),
            element("li", f"{more} more in the JSON", class_="faint") if more > 0 else None,
        ),
    )


def _victims(report: Report, place: int) -> Content:
    row = report.cascade[place]
    known = 0 <= row.because_of < len(report.causes)
    because = report.causes[row.because_of].id if known else ""
    who = name_ranks(row.ranks)
    says = row.says or f"carry no blame: they suffer from {because}"
    repeats = who.lower() in says.lower() or fold_ranks(row.ranks) in says
    return says if repeats else f"{who}: {says}"
