"""The climb as a matrix: ranks down, rows across, each cell with its outcome; below it the knobs,
and what to try next by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.model.diagnosis import Climb, ClimbCell, Report
from trainprobe.report.lines import Line, Span, Style, padded, span, wrapped, wrapped_behind
from trainprobe.report.phrases import clean, columns, duration

LABEL = "climb  "
INDENT = " " * len(LABEL)
GAP = 2
ROWS_CAP = 24
WORDS: dict[str, tuple[str, Style]] = {
    "passed": ("passed", "good"),
    "failed": ("FAILED", "bad"),
    "timed_out": ("HUNG", "bad"),
    "crashed": ("CRASHED", "bad"),
    "not_measured": ("?", "warn"),
    "skipped": (".", "faint"),
}
"""The word for an outcome in the matrix; a cell that passed shows only its time."""


def climb_sentence(report: Report, width: int) -> list[Line]:
    """Return what belongs on the first screen: the smallest failing cell with its remedy, and the
    next step by hand.
    """
    climb = report.climb
    if climb is None or climb.smallest_failing is None:
        return []
    lines = wrapped([span(climb.says, "strong")], width)
    return [*lines, *_next(climb, width)]


def matrix_lines(report: Report, width: int) -> list[Line]:
    """Return the matrix, its knobs and its times; nothing where the command was not climbed."""
    climb = report.climb
    if climb is None:
        return []
    grid = [cell for cell in climb.cells if not cell.knob]
    lines = _matrix(grid, climb.smallest_failing, width)
    lines += _knobs([cell for cell in climb.cells if cell.knob], climb, width)
    if climb.smallest_failing is None:
        lines += _next(climb, width)
    if climb.cells_s:
        says = f"total {duration(climb.total_s)}; its cells took {duration(climb.cells_s)}"
        lines += wrapped([span(says, "faint")], width, first=INDENT)
    return lines


def _next(climb: Climb, width: int) -> list[Line]:
    return wrapped([span(climb.next)], width, first="next by hand: ") if climb.next else []


def _matrix(grid: Sequence[ClimbCell], smallest: ClimbCell | None, width: int) -> list[Line]:
    """One line for each number of ranks; columns that do not fit continue below."""
    rows = sorted({cell.rows for cell in grid}, key=lambda count: (count is not None, count or 0))
    ranks = sorted({cell.ranks for cell in grid})
    at = {(cell.ranks, cell.rows): cell for cell in grid}
    heads = ["as given" if count is None else str(count) for count in rows]
    rooms = [
        max(columns(head), *(columns(_text(at.get((rank, count)), smallest)) for rank in ranks))
        + GAP
        for head, count in zip(heads, rows, strict=True)
    ]
    names = [f"{rank} {'rank' if rank == 1 else 'ranks'}" for rank in ranks]
    first = max(map(len, names), default=0)
    lines: list[Line] = []
    for start, end in _bands(rooms, width - len(INDENT) - first):
        lead = LABEL if not lines else INDENT
        if rows != [None]:
            pairs = zip(heads[start:end], rooms[start:end], strict=True)
            head = "".join(f"{text:>{room}}" for text, room in pairs)
            lines.append((Span(lead), Span(f"{'rows':<{first}}", "faint"), Span(head, "faint")))
            lead = INDENT
        for name, rank in list(zip(names, ranks, strict=True))[:ROWS_CAP]:
            cells = [
                piece
                for count, room in zip(rows[start:end], rooms[start:end], strict=True)
                for piece in _shown(at.get((rank, count)), smallest, room)
            ]
            lines.append((Span(lead), Span(f"{name:<{first}}"), *cells))
            lead = INDENT
        if len(ranks) > ROWS_CAP:
            rest = f"and {len(ranks) - ROWS_CAP} more in the JSON"
            lines.append((Span(INDENT), Span(rest, "faint")))
    return lines


def _bands(rooms: Sequence[int], width: int) -> list[tuple[int, int]]:
    """Return (start, end) of the columns that fit beside each other."""
    bands: list[tuple[int, int]] = []
    start = used = 0
    for place, room in enumerate(rooms):
        if used + room > width and place > start:
            bands.append((start, place))
            start, used = place, 0
        used += room
    return [*bands, (start, len(rooms))] if rooms else []


def _text(cell: ClimbCell | None, smallest: ClimbCell | None) -> str:
    """`1.2 s`, `HUNG 24 s`, with `<` behind the smallest failing one."""
    if cell is None:
        return "."
    word, _ = WORDS[cell.outcome]
    if cell.outcome == "passed":
        return duration(cell.took_s)
    failed = cell.outcome in ("failed", "timed_out", "crashed")
    text = f"{word} {duration(cell.took_s)}" if failed else word
    return f"{text} <" if smallest is not None and cell.cell == smallest.cell else text


def _shown(cell: ClimbCell | None, smallest: ClimbCell | None, room: int) -> tuple[Span, Span]:
    text = _text(cell, smallest)
    style: Style = WORDS[cell.outcome][1] if cell is not None else "faint"
    return Span(" " * (room - columns(text))), Span(text, style)


def _knobs(tried: Sequence[ClimbCell], climb: Climb, width: int) -> list[Line]:
    """One line for each knob: the outcome of the cell with it, its time, and the conclusion."""
    if not tried:
        return []
    names = min(32, max(columns(clean(cell.knob)) for cell in tried))
    lines: list[Line] = []
    for cell in tried:
        word, style = WORDS[cell.outcome]
        word = {".": "skipped", "?": "not measured"}.get(word, word)
        took = duration(cell.took_s) if cell.took_s else ""
        name = padded(clean(cell.knob)[:names], names)
        label = LABEL.replace("climb", "knobs") if not lines else INDENT
        head = (Span(f"{label}{name}  "), Span(f"{word:<12}", style), Span(f"{took:>11}  "))
        lines += wrapped_behind(head, [span(_knob_says(cell, climb))], width)
    return lines


def _knob_says(cell: ClimbCell, climb: Climb) -> str:
    about = clean(cell.says).rstrip(".")
    if cell.outcome in ("skipped", "not_measured"):
        return about or "not tried"
    if cell.applied is False:
        return f"did not take effect: {about}" if about else "did not take effect"
    if cell.knob in climb.healed_by:
        return "heals it" + (", as nothing does" if climb.steady is False else "")
    if cell.knob in climb.not_healed_by:
        return "does not heal it"
    return f"{'passes' if cell.outcome == 'passed' else 'fails again'} when nothing is changed"
