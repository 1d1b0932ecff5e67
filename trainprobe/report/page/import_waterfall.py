"""The imports of the job one below the other, with time and memory, as they were measured alone."""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.facts import ImportTried
from trainprobe.report.page.markup import Markup, element
from trainprobe.report.phrases import duration

ROWS_CAP, ROOM = 40, 260
MEBI = 2**20


def import_section(imports: Sequence[ImportTried]) -> Markup | None:
    """Return the waterfall; None where no import was timed."""
    alone = [one for one in imports if one.how == "alone" and one.took_s is not None]
    if not alone:
        return None
    shown = sorted(alone, key=lambda one: -(one.took_s or 0.0))[:ROWS_CAP]
    order = [one for one in alone if one in shown]
    whole_s = sum(one.took_s or 0.0 for one in order) or 1.0
    most = max((one.growth_bytes or 0 for one in order), default=0)
    began_s = 0.0
    rows = []
    for one in order:
        rows.append(_row(one, began_s, whole_s, most))
        began_s += one.took_s or 0.0
    return element(
        "section",
        element(
            "h2", "Imports", element("small", "each in a process of its own"), id="imports-title"
        ),
        element(
            "div",
            element(
                "table",
                element(
                    "thead",
                    element(
                        "tr",
                        *(
                            element("th", name, scope="col")
                            for name in ("Module", "Time", "Memory", "Left behind")
                        ),
                    ),
                ),
                element("tbody", *rows),
                class_="imports",
            ),
            class_="scroll",
            tabindex="0",
            role="group",
            aria_label="Table of imports; it can be scrolled",
        ),
        id="imports",
        aria_labelledby="imports-title",
    )


def _row(one: ImportTried, began_s: float, whole_s: float, most: int) -> Markup:
    took_s = one.took_s or 0.0
    growth = one.growth_bytes or 0
    left = []
    if one.threads and one.threads > 1:
        left.append(f"{one.threads} threads")
    if one.touched_cuda:
        left.append("a GPU is open")
    if one.lock_wait_s >= 1:
        left.append(f"waited {duration(one.lock_wait_s)} for a lock file")
    if one.error:
        left.append(f"{one.error_type}: {one.error}" if one.error_type else one.error)
    return element(
        "tr",
        element("th", element("code", one.module), scope="row"),
        element(
            "td",
            _bar(began_s / whole_s, took_s / whole_s, one.outcome),
            duration(took_s),
            class_="time",
        ),
        element(
            "td",
            _bar(0.0, growth / most, "memory") if most else None,
            f"{growth / MEBI:,.0f} MiB" if growth else "",
            class_="time",
        ),
        element("td", "; ".join(left) or "-"),
        class_="bad" if one.outcome not in ("passed", "not_measured") else None,
    )


def _bar(start: float, share: float, kind: str) -> Markup:
    return element(
        "svg",
        element("rect", width=ROOM, height="8", rx="2", class_="room"),
        element(
            "rect",
            x=f"{ROOM * min(start, 0.995):.1f}",
            width=f"{max(1.5, ROOM * share):.1f}",
            height="8",
            rx="1",
            class_="part",
        ),
        viewbox=f"0 0 {ROOM} 8",
        width=ROOM,
        height="8",
        class_=f"time {kind}",
        aria_hidden="true",
    )
