"""What changed since an earlier run, in words and side by side."""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.model.diagnosis import Report
from trainprobe.report.comparison_section import Compared, against_of
from trainprobe.report.page.markup import Markup, element


def comparison_section(report: Report) -> Markup | None:
    """Return the section; None where the report was compared with nothing."""
    found = against_of(report)
    if found is None:
        return None
    answer = [row for row in found.rows if row.part == "answer"]
    same = [row for row in found.rows if row.part != "answer" and not row.is_changed]
    return element(
        "section",
        element("h2", "Then and now", element("small", f"since {found.since}"), id="against-title"),
        element("ul", *(element("li", says) for says in found.sentences), class_="changes"),
        _table([*answer, *found.changed_values], "Then and now"),
        element(
            "details",
            element("summary", f"What is the same in both: {len(same)}"),
            _table(same, "The same in both"),
        )
        if same
        else None,
        id="against",
        aria_labelledby="against-title",
    )


def _table(rows: Sequence[Compared], about: str) -> Markup:
    head = [
        element("td", ""),
        element("th", "Then", scope="col"),
        element("th", "Now", scope="col"),
    ]
    return element(
        "div",
        element(
            "table",
            element("thead", element("tr", *head)),
            element("tbody", *map(_row, rows)),
            class_="against",
        ),
        class_="scroll",
        tabindex="0",
        role="group",
        aria_label=f"{about}; it can be scrolled",
    )


def _row(row: Compared) -> Markup:
    sign = element("span", "≠ ", aria_hidden="true") if row.is_changed else None
    spoken = element("span", "changed: ", class_="spoken") if row.is_changed else None
    return element(
        "tr",
        element("th", sign, spoken, row.name, scope="row"),
        element("td", row.before or "-"),
        element("td", row.after or "-"),
        class_="changed" if row.is_changed else None,
    )
