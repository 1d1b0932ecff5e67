"""The ladder: each rung with its times against the deadlines, its outcome in a word and a sign;
and the climb of the user's own command as a matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainprobe.model.diagnosis import Climb, ClimbCell, LadderRow, Report
from trainprobe.model.ranks import name_ranks
from trainprobe.report.page.markup import Markup, element, joined
from trainprobe.report.phrases import duration

SIGNS = {
    "passed": "✓",
    "failed": "✗",
    "timed_out": "■",
    "crashed": "✷",
    "skipped": "-",
    "not_measured": "?",
}
WORDS = {"timed_out": "hung", "not_measured": "not measured"}
_ROOM = 180
_MEASURES_CAP = 40


def ladder_section(report: Report, deadlines: Mapping[str, float]) -> Markup | None:
    """Return the rungs that ran, then those that were skipped, by reason; None without a ladder."""
    if not report.ladder:
        return None
    knobs = {cell.cell for cell in report.climb.cells if cell.knob} if report.climb else set()
    ran = [row for row in report.ladder if row.outcome != "skipped" and row.cell not in knobs]
    skipped: dict[str, list[str]] = {}
    for row in report.ladder:
        if row.outcome == "skipped":
            skipped.setdefault(row.says or "no reason was given", []).append(row.probe)
    longest = max((row.took_s for row in ran), default=0.0)
    table = element(
        "table",
        element("caption", "Each rung's time against its deadline"),
        element(
            "thead",
            element(
                "tr",
                *(
                    element("th", name, scope="col")
                    for name in ("Rung", "Outcome", "Time", "What it asked")
                ),
            ),
        ),
        element("tbody", *(_row(row, deadlines.get(row.cell, 0.0), longest) for row in ran)),
        class_="rungs",
    )
    return element(
        "section",
        element("h2", "Ladder", id="ladder-title"),
        element(
            "div",
            table,
            class_="scroll",
            tabindex="0",
            role="group",
            aria_label="Table of rungs; it can be scrolled",
        )
        if ran
        else None,
        element(
            "details",
            element("summary", f"{sum(map(len, skipped.values()))} rungs were skipped"),
            element(
                "dl",
                *(
                    joined(element("dt", reason), element("dd", ", ".join(dict.fromkeys(probes))))
                    for reason, probes in skipped.items()
                ),
            ),
        )
        if skipped
        else None,
        id="ladder",
        aria_labelledby="ladder-title",
    )


def _row(row: LadderRow, deadline_s: float, longest: float) -> Markup:
    of = f" of {duration(deadline_s)}" if deadline_s else ""
    size = f"{row.nproc} {'rank' if row.nproc == 1 else 'ranks'}" if row.nproc else ""
    label = row.cell.partition("@")[2]
    if label and label != str(row.nproc):
        size = label
    ranks = name_ranks(row.ranks) if row.outcome != "passed" and len(row.ranks) < 64 else ""
    return element(
        "tr",
        element("th", row.probe, element("small", size) if size else None, scope="row"),
        element(
            "td",
            element("span", SIGNS[row.outcome], aria_hidden="true", class_="sign"),
            f" {WORDS.get(row.outcome, row.outcome)}",
            class_=f"outcome {row.outcome}",
        ),
        element(
            "td", _bar(row, deadline_s or longest), f"{duration(row.took_s)}{of}", class_="time"
        ),
        element(
            "td",
            row.question,
            element("p", row.says, class_="result") if row.says else None,
            element("small", ranks) if ranks else None,
            _measures(row),
        ),
        class_="bad" if row.outcome in ("failed", "timed_out", "crashed") else None,
    )


def _bar(row: LadderRow, whole_s: float) -> Markup:
    share = min(1.0, row.took_s / whole_s) if whole_s > 0 else 0.0
    return element(
        "svg",
        element("rect", width=_ROOM, height="8", rx="2", class_="room"),
        element("rect", width=f"{max(1.5, _ROOM * share):.1f}", height="8", rx="2", class_="part"),
        viewbox=f"0 0 {_ROOM} 8",
        width=_ROOM,
        height="8",
        class_=f"time {row.outcome}",
        aria_hidden="true",
    )


def _measures(row: LadderRow) -> Markup | None:
    if not row.measures:
        return None
    items = [
        element(
            "li",
            element("code", measure.name),
            f" {measure.value:.6g} {measure.unit}",
            f", limit {measure.threshold:.6g} {measure.unit}"
            if measure.threshold is not None
            else None,
            element("small", measure.source) if measure.source else None,
        )
        for measure in row.measures[:_MEASURES_CAP]
    ]
    more = len(row.measures) - _MEASURES_CAP
    return element(
        "details",
        element("summary", f"{len(row.measures)} measured"),
        element("ul", *items, element("li", f"{more} more") if more > 0 else None, class_="plain"),
    )


# ----------------------------------------------------------------------------------------- climb


def climb_section(report: Report) -> Markup | None:
    """Return the matrix of the user's own command, ranks against rows, and the knobs."""
    climb = report.climb
    if climb is None or not climb.cells:
        return None
    return element(
        "section",
        element("h2", "Your command, from small to large", id="climb-title"),
        element("p", climb.says) if climb.says else None,
        _matrix(climb),
        _knobs(climb),
        element("p", element("b", "Next by hand: "), climb.next) if climb.next else None,
        element(
            "p",
            f"{duration(climb.total_s)} in all; the cells took {duration(climb.cells_s)}.",
            class_="faint",
        )
        if climb.cells_s
        else None,
        id="climb",
        aria_labelledby="climb-title",
    )


def _matrix(climb: Climb) -> Markup:
    grid = [cell for cell in climb.cells if not cell.knob]
    columns = sorted({cell.rows for cell in grid}, key=lambda one: (one is not None, one or 0))
    ranks = sorted({cell.ranks for cell in grid})
    at = {(cell.ranks, cell.rows): cell for cell in grid}
    return element(
        "div",
        element(
            "table",
            element("caption", "Ranks down, rows of data across"),
            element(
                "thead",
                element(
                    "tr",
                    element("td", ""),
                    *(
                        element("th", "as given" if rows is None else f"{rows:,} rows", scope="col")
                        for rows in columns
                    ),
                ),
            ),
            element(
                "tbody",
                *(
                    element(
                        "tr",
                        element(
                            "th", f"{number} {'rank' if number == 1 else 'ranks'}", scope="row"
                        ),
                        *(_matrix_cell(at.get((number, rows)), climb) for rows in columns),
                    )
                    for number in ranks
                ),
            ),
            class_="matrix",
        ),
        class_="scroll",
        tabindex="0",
        role="group",
        aria_label="Matrix of ranks and rows; it can be scrolled",
    )


def _matrix_cell(cell: ClimbCell | None, climb: Climb) -> Markup:
    if cell is None:
        return element("td", "·", class_="outcome")
    smallest = climb.smallest_failing is not None and climb.smallest_failing.cell == cell.cell
    return element(
        "td",
        element("span", SIGNS[cell.outcome], aria_hidden="true", class_="sign"),
        f" {WORDS.get(cell.outcome, cell.outcome)} {duration(cell.took_s) if cell.took_s else ''}",
        element("small", "◂ smallest that fails") if smallest else None,
        title=cell.says or None,
        class_=f"outcome {cell.outcome}{' smallest' if smallest else ''}",
    )


def _knobs(climb: Climb) -> Markup | None:
    tried: Sequence[ClimbCell] = [cell for cell in climb.cells if cell.knob]
    if not tried:
        return None
    rows = []
    for cell in tried:
        if cell.knob in climb.healed_by:
            word = "heals it" + (", as nothing does" if climb.steady is False else "")
        elif cell.knob in climb.not_healed_by:
            word = "does not heal it"
        else:
            word = cell.says or "not tried"
        rows.append(
            element(
                "tr",
                element("th", element("code", cell.knob), scope="row"),
                element(
                    "td",
                    element("span", SIGNS[cell.outcome], aria_hidden="true", class_="sign"),
                    f" {WORDS.get(cell.outcome, cell.outcome)}",
                    class_=f"outcome {cell.outcome}",
                ),
                element("td", duration(cell.took_s) if cell.took_s else ""),
                element("td", word),
            )
        )
    return element(
        "table",
        element("caption", "The smallest failing cell with one knob changed"),
        element("tbody", *rows),
        class_="knobs",
    )
