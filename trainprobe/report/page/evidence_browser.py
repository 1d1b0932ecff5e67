"""Every raw record within the page's budget, redacted as the case is, to be searched and opened."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

from trainprobe.report.page.exhibits import Exhibits, RawRecord
from trainprobe.report.page.markup import Markup, data_island, element
from trainprobe.report.phrases import duration


def evidence_section(exhibits: Exhibits) -> Markup | None:
    """Return the list; None where the page was made without the evidence."""
    raw = exhibits.raw
    if not raw:
        return None
    total = sum(exhibits.kinds.values())
    note = f"{len(raw):,} of {total:,} records" if len(raw) < total else f"{total:,} records"
    return element(
        "section",
        element("h2", "Evidence", element("small", note), id="evidence-title"),
        element(
            "p",
            element(
                "label",
                "Search ",
                element(
                    "input",
                    type="search",
                    id="evidence-search",
                    autocomplete="off",
                    spellcheck="false",
                    placeholder="E12, stacks, rank 3, denied",
                ),
            ),
            element("output", id="evidence-found", aria_live="polite"),
            class_="tools script-only",
        ),
        element(
            "p",
            "What a look brought opens with JavaScript; it is in evidence.jsonl of the case, too.",
            class_="faint no-script",
        ),
        element(
            "details",
            element("summary", "All looks by kind"),
            _kinds(exhibits.kinds),
            class_="kinds",
        ),
        element("div", *(_record(one) for one in raw), id="records", class_="records"),
        data_island("evidence-data", {one.id: one.data for one in raw}),
        id="evidence",
        aria_labelledby="evidence-title",
    )


def _record(one: RawRecord) -> Markup:
    when = f"{datetime.fromtimestamp(one.began, timezone.utc):%H:%M:%S}" if one.began else ""
    details = [
        ("source", one.source),
        ("launch", one.cell),
        ("began", f"{when} UTC" if when else ""),
        ("took", duration(one.took_s) if one.took_s >= 0.05 else ""),
        ("why not", one.reason),
    ]
    return element(
        "details",
        element(
            "summary",
            element("b", one.id, id=f"e-{one.id}" if one.id.isalnum() else None),
            element("code", one.kind),
            element("span", one.about),
            element("span", one.outcome, class_=f"look {one.outcome}")
            if one.outcome != "ok"
            else None,
            element("span", "cited", class_="look cited") if one.cited else None,
        ),
        element(
            "p",
            *(element("span", f"{name}: {value}") for name, value in details if value),
            element("span", "cut for the page") if one.cut else None,
            class_="faint about",
        ),
        class_="record",
        data_record=one.id,
    )


def _kinds(kinds: Mapping[tuple[str, str], int]) -> Markup:
    names = sorted({kind for kind, _ in kinds})
    rows = []
    for name in names:
        good = sum(count for (kind, how), count in kinds.items() if kind == name and how == "ok")
        other = [
            f"{count:,} {how}"
            for (kind, how), count in sorted(kinds.items())
            if kind == name and how != "ok"
        ]
        rows.append(
            element(
                "tr",
                element("th", element("code", name), scope="row"),
                element("td", f"{good:,}"),
                element("td", ", ".join(other) or "-"),
            )
        )
    heads = ("Kind", "Looked", "Could not look")
    return element(
        "table",
        element("thead", element("tr", *(element("th", name, scope="col") for name in heads))),
        element("tbody", *rows),
    )
