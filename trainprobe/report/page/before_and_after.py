"""What changed since an earlier case, in words and side by side."""

from __future__ import annotations

from trainprobe.model.diagnosis import Report
from trainprobe.report.comparison import Compared, compared
from trainprobe.report.page.markup import Markup, element


def comparison_section(before: Report, after: Report) -> Markup:
    """Return the section for two reports, the earlier one first."""
    found = compared(before, after)
    return element(
        "section",
        element("h2", "Before and after", id="against-title"),
        element("ul", *(element("li", says) for says in found.sentences), class_="changes"),
        element(
            "div",
            element(
                "table",
                element(
                    "thead",
                    element(
                        "tr",
                        element("td", ""),
                        element("th", "Before", scope="col"),
                        element("th", "After", scope="col"),
                    ),
                ),
                element("tbody", *map(_row, found.rows)),
                class_="against",
            ),
            class_="scroll",
            tabindex="0",
            role="group",
            aria_label="Before and after; it can be scrolled",
        ),
        id="against",
        aria_labelledby="against-title",
    )


def _row(row: Compared) -> Markup:
    sign = element("span", "≠ ", aria_label="changed: ") if row.is_changed else None
    return element(
        "tr",
        element("th", sign, row.name, scope="row"),
        element("td", row.before or "-"),
        element("td", row.after or "-"),
        class_="changed" if row.is_changed else None,
    )
