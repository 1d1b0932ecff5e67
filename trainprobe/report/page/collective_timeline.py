"""Calls of collectives, rank against sequence number: where the ranks part. Ranks that made the
same calls share a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainprobe.facts.collectives import CollectiveCall
from trainprobe.model.diagnosis import Report
from trainprobe.model.ranks import fold_ranks
from trainprobe.report.page.markup import Markup, element

COLUMNS, ROWS_CAP, GROUPS_CAP = 28, 24, 3
_LETTERS = {
    "all_reduce": "AR",
    "all_gather": "AG",
    "all_gather_into_tensor": "AG",
    "reduce_scatter": "RS",
    "reduce_scatter_tensor": "RS",
    "broadcast": "BC",
    "barrier": "BA",
    "all_to_all": "AA",
    "all_to_all_single": "AA",
    "reduce": "RE",
    "gather": "GA",
    "scatter": "SC",
    "send": "SE",
    "recv": "RV",
}


@dataclass(frozen=True)
class _Cell:
    """What one rank did under one number; `op` is empty where it made no such call."""

    op: str = ""
    sizes: str = ""
    finished: bool = False
    where: str = ""


def collective_section(report: Report, calls: Sequence[CollectiveCall]) -> Markup | None:
    """Return the timelines of the groups in which most calls are open; None where no two ranks'
    calls are known.
    """
    cell = _cell_of(report, calls)
    groups: dict[str, dict[int, dict[int, CollectiveCall]]] = {}
    for call in calls:
        if call.cell == cell and call.rank is not None and not call.p2p:
            ranks = groups.setdefault(call.group, {})
            ranks.setdefault(call.rank, {})[call.number] = call
    wide = {name: ranks for name, ranks in groups.items() if len(ranks) > 1}
    if not wide:
        return None
    ordered = sorted(wide.items(), key=lambda item: (-_open(item[1]), -len(item[1]), item[0]))
    tables = [_group(name, ranks) for name, ranks in ordered[:GROUPS_CAP]]
    more = len(ordered) - GROUPS_CAP
    return element(
        "section",
        element(
            "h2",
            "Collectives",
            element("small", "by rank and sequence number"),
            id="collectives-title",
        ),
        *tables,
        element("p", f"{more} more groups are in the case.", class_="faint") if more > 0 else None,
        id="collectives",
        aria_labelledby="collectives-title",
    )


def _cell_of(report: Report, calls: Sequence[CollectiveCall]) -> str:
    """The launch that failed, else the last one."""
    cells = list(dict.fromkeys(call.cell for call in calls))
    failed = [
        row.cell for row in report.ladder if row.outcome in ("failed", "timed_out", "crashed")
    ]
    if report.climb is not None and report.climb.smallest_failing is not None:
        failed.append(report.climb.smallest_failing.cell)
    return next((cell for cell in reversed(failed) if cell in cells), cells[-1] if cells else "")


def _open(ranks: dict[int, dict[int, CollectiveCall]]) -> int:
    return sum(call.pending for calls in ranks.values() for call in calls.values())


def _group(name: str, ranks: dict[int, dict[int, CollectiveCall]]) -> Markup:
    numbers = sorted({number for calls in ranks.values() for number in calls})
    last = [max(calls) for calls in ranks.values()]
    # Where they part is behind the number that the slowest rank has reached.
    end = min(max(last), min(last) + COLUMNS // 2)
    shown = [number for number in numbers if number <= end][-COLUMNS:]
    rows: dict[tuple[_Cell, ...], list[int]] = {}
    for rank, calls in ranks.items():
        earliest = min(calls)
        key = tuple(_cell(calls.get(number), number < earliest) for number in shown)
        rows.setdefault(key, []).append(rank)
    parts = [_differs(column) for column in zip(*rows, strict=True)]
    first = next((place for place, apart in enumerate(parts) if apart), None)
    ordered = sorted(rows.items(), key=lambda item: (len(item[1]), min(item[1])))
    desc = next((call.desc for calls in ranks.values() for call in calls.values() if call.desc), "")
    title = f"Group {desc or name}" if desc or name else "The default group"
    note = ""
    if first is not None:
        note = f"They part at #{shown[first]}."
    elif any(cell.op and not cell.finished for cells in rows for cell in cells):
        note = "All made the same calls; the last one is open."
    used = dict.fromkeys(cell.op for cells in rows for cell in cells if cell.op)
    return element(
        "figure",
        element("figcaption", element("b", title), f" {note}"),
        element(
            "div",
            element(
                "table",
                element(
                    "thead",
                    element(
                        "tr",
                        element("th", "Ranks", scope="col"),
                        *(
                            element(
                                "th", number, scope="col", class_="apart" if place == first else ""
                            )
                            for place, number in enumerate(shown)
                        ),
                    ),
                ),
                element(
                    "tbody",
                    *(_row(cells, members, parts, first) for cells, members in ordered[:ROWS_CAP]),
                ),
                class_="calls",
            ),
            class_="scroll",
            tabindex="0",
            role="group",
            aria_label=f"{title}: calls by rank; it can be scrolled",
        ),
        element(
            "p",
            *(
                element("span", element("b", _letters(op)), f" {op}", class_="key")
                for op in list(used)[:10]
            ),
            element("span", element("i", "◐", class_="pending"), " still inside", class_="key"),
            element("span", element("i", "·"), " not called", class_="key"),
            class_="keys",
        ),
        element("p", f"{len(ordered) - ROWS_CAP} more kinds of rank.", class_="faint")
        if len(ordered) > ROWS_CAP
        else None,
    )


def _cell(call: CollectiveCall | None, forgotten: bool) -> _Cell:
    if call is None:
        return _Cell("", "forgotten" if forgotten else "")
    sizes = "x".join(map(str, call.sizes[:6]))
    base = call.file.rpartition("/")[2]
    where = f"{base}:{call.line}" if base and call.line else ""
    return _Cell(call.op, f"{sizes} {call.dtype}".strip(), call.finished, where)


def _differs(column: Iterable[_Cell]) -> bool:
    """Whether ranks made different calls under this number, or only some made one."""
    known = [cell for cell in column if cell.sizes != "forgotten"]
    return len({(cell.op, cell.sizes) for cell in known}) > 1


def _row(
    cells: Sequence[_Cell], ranks: Sequence[int], parts: Sequence[bool], first: int | None
) -> Markup:
    found = []
    for place, cell in enumerate(cells):
        says = f"{cell.op} {cell.sizes} {cell.where}".strip() if cell.op else "not called"
        says += "" if cell.finished or not cell.op else ", still inside"
        kind = "none" if not cell.op else "done" if cell.finished else "pending"
        if not cell.op and cell.sizes:
            says, kind = "no longer recorded", "forgotten"
        is_apart = first is not None and place >= first and parts[place]
        mark = "" if cell.finished or not cell.op else "◐"
        found.append(
            element(
                "td",
                element(
                    "span", f"{mark}{_letters(cell.op)}" if cell.op else "·", aria_hidden="true"
                ),
                element("span", says, class_="spoken"),
                title=says,
                class_=f"{kind} apart" if is_apart else kind,
            )
        )
    return element(
        "tr",
        element(
            "th",
            element("span", fold_ranks(ranks), class_="set"),
            element("small", f"{len(ranks):,} ranks") if len(ranks) > 1 else None,
            scope="row",
        ),
        *found,
    )


def _letters(op: str) -> str:
    return _LETTERS.get(op) or op.replace("_", "").upper()[:2]
