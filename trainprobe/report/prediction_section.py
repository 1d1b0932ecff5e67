"""What the planned size will do: one line for each number with its interval and limit, a small
picture of the first that matters, and the safe workers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from trainprobe.model.diagnosis import LadderRow, Report
from trainprobe.model.predictions import Prediction
from trainprobe.report.lines import Line, Span, Style, span, wrapped
from trainprobe.report.phrases import clean
from trainprobe.scaling.wording import amount, number

LABEL = "predicted  "
ROWS = 5
MOST_COLUMNS = 64
MARKS: dict[str, Style] = {"o": "strong", "X": "bad", "x": "strong", ".": "faint", "-": "warn"}
NAMES = {
    "pss": "memory",
    "fds": "descriptors",
    "pids": "processes",
    "shm": "shared memory",
    "took_s": "one pass",
}
BOUNDED = ("pss", "fds", "pids", "shm")  # what fewer workers need less of
PROBES = {"user_script": "the command", "scaled_dataset": "the data"}


def prediction_lines(report: Report, width: int) -> list[Line]:
    """Return the predictions as lines of at most `width` columns; none where nothing was
    predicted.
    """
    told = [one for one in report.predictions if one.value is not None]
    lines: list[Line] = []
    several = len({one.probe for one in told}) > 1
    for one in sorted(told, key=lambda one: not one.will_hit):
        whose = f"{PROBES.get(one.probe, one.probe)}, " if several else ""
        basis = [span(f"({one.basis})", "faint")] if one.basis else []
        lines += wrapped(
            [span(whose + one.says, "bad" if one.will_hit else "plain"), *basis],
            width,
            first=LABEL if not lines else " " * len(LABEL),
        )
    drawn = next((one for one in told if one.will_hit and one.curve), None)
    if drawn is not None:
        lines += picture(drawn, width)
    missing = _missing([one for one in report.predictions if one.value is None])
    if missing:
        lines += wrapped(
            [span(missing, "faint")], width, first=LABEL if not lines else " " * len(LABEL)
        )
    workers = _workers(report.ladder, told)
    return [*lines, *(wrapped([span(workers)], width, first="workers    ") if workers else [])]


def picture(one: Prediction, width: int) -> list[Line]:
    """Return `ROWS` lines and two of captions: both axes by powers, `o` measured, `.` the law,
    `X` the prediction, `-` the limit.
    """
    columns = min(MOST_COLUMNS, width - len(LABEL) - 12)
    spots = [("o", size, value * one.times) for size, value in one.points]
    law = [(size, value * one.times) for size, value, *_ in one.curve]
    target, value = float(one.at[one.axis]), one.value or 0.0
    levels = [
        level
        for level in (
            *(level for _, _, level in spots),
            *(level for _, level in law),
            value,
            one.limit,
        )
        if level and level > 0
    ]
    left, right = math.log(min(law[0][0], spots[0][1])), math.log(max(target, law[-1][0]))
    low, high = math.log(min(levels)), math.log(max(levels))
    if right <= left or high <= low:
        return []
    grid = [[" "] * columns for _ in range(ROWS)]

    def place(size: float, level: float) -> tuple[int, int]:
        return round((math.log(level) - low) / (high - low) * (ROWS - 1)), round(
            (math.log(size) - left) / (right - left) * (columns - 1)
        )

    if one.limit:
        row, _ = place(target, one.limit)
        grid[row] = ["-"] * columns
    for column in range(columns):
        row, _ = place(
            target, _along(law, math.exp(left + (right - left) * column / (columns - 1)))
        )
        grid[row][column] = "."
    for mark, size, level in [*spots, ("X" if one.will_hit else "x", target, value)]:
        row, column = place(size, level)
        grid[row][column] = mark
    limit_row = place(target, one.limit)[0] if one.limit else None
    lines = []
    for row in reversed(range(ROWS)):
        level = (
            one.limit
            if row == limit_row and one.limit is not None
            else math.exp(low + (high - low) * row / (ROWS - 1))
        )
        label = (
            f"{amount(level, one.unit):>10} |" if row in (0, ROWS - 1, limit_row) else f"{'':>10} |"
        )
        lines.append(
            (Span(" " * len(LABEL)), Span(label, "faint"), *_styled("".join(grid[row]).rstrip()))
        )
    first, last = f"{number(math.exp(left))} {one.axis}", f"{number(target)}"
    axis = f"{' ' * (len(LABEL) + 12)}{first}{last:>{max(1, columns - len(first))}}"
    words = (
        f"o measured{f', times {one.times:.3g} for the planned ranks and workers' if abs(one.times - 1) > 0.005 else ''};"  # noqa: E501
        " . law"
    )
    words += f"; {'X' if one.will_hit else 'x'} predicted{'; - limit' if one.limit else ''}"
    return [
        *lines,
        (Span(axis, "faint"),),
        *wrapped([span(words, "faint")], width, first=" " * (len(LABEL) + 12)),
    ]


def _along(law: Sequence[tuple[float, float]], size: float) -> float:
    """The law between two of its points, by powers."""
    for (small, low), (large, high) in pairwise(law):
        if size <= large * (1 + 1e-9):
            part = (math.log(size) - math.log(small)) / (math.log(large) - math.log(small))
            return math.exp(
                math.log(low) + min(max(part, 0.0), 1.0) * (math.log(high) - math.log(low))
            )
    return law[-1][1]


def _styled(text: str) -> list[Span]:
    """Runs of one mark in its style."""
    spans: list[Span] = []
    for letter in text:
        style = MARKS.get(letter, "plain")
        if spans and spans[-1].style == style:
            spans[-1] = Span(spans[-1].text + letter, style)
        else:
            spans.append(Span(letter, style))
    return spans


def _missing(refused: Sequence[Prediction]) -> str:
    """One sentence for each reason, and not one for each number."""
    by_reason: dict[str, list[str]] = {}
    for one in refused:
        reason = clean(one.says.partition(": ")[2])
        names = by_reason.setdefault(reason, [])
        name = NAMES.get(one.name, one.name)
        if name not in names:
            names.append(name)
    return "; ".join(
        f"{', '.join(names)}: no prediction, {reason}" for reason, names in by_reason.items()
    )


def _workers(ladder: Sequence[LadderRow], told: Sequence[Prediction]) -> str:
    """The safe number of workers, by the measured size and by the planned one."""
    measured = next(
        (
            measure.value
            for row in ladder
            for measure in row.measures
            if measure.name == "workers.safe"
        ),
        None,
    )
    bounded = [one for one in told if one.safe_workers is not None]
    least = min(bounded, key=lambda one: one.safe_workers or 0, default=None)
    none_fits = any(
        one.will_hit and one.name in BOUNDED and one.at.get("workers") and one.safe_workers is None
        for one in told
    )
    says = (
        [f"{measured:.0f} for each rank and loader are safe at the size that was measured"]
        if measured is not None
        else []
    )
    if none_fits:
        says.append("no number of them stays below the limit at the planned size")
    elif (
        least is not None
        and least.safe_workers is not None
        and least.safe_workers < least.at.get("workers", 0)
    ):
        says.append(
            f"{least.safe_workers} for each rank at the planned size"
            f" ({NAMES.get(least.name, least.name)} bears no more)"
        )
    return "; ".join(says)
