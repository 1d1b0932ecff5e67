"""Predictions for the planned size: one line for each number with its interval and limit, a small
picture of the first that matters, and the safe number of workers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from trainprobe.model.diagnosis import LadderRow, Report
from trainprobe.model.predictions import Prediction
from trainprobe.report.lines import Block, Line, Span, Style, span, wrapped
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
BOUNDED = ("pss", "fds", "pids", "shm")  # fewer workers need less of these
PROBES = {"user_script": "the command", "scaled_dataset": "the data"}


def prediction_lines(report: Report, width: int) -> list[Line]:
    """Return the predictions as lines of at most `width` columns; none where nothing was
    predicted.
    """
    known = [prediction for prediction in report.predictions if prediction.value is not None]
    block = Block(LABEL, width)
    several = len({prediction.probe for prediction in known}) > 1
    for prediction in sorted(known, key=lambda prediction: not prediction.will_hit):
        probe = PROBES.get(prediction.probe, prediction.probe)
        says = f"{probe}, {prediction.says}" if several else prediction.says
        basis = [span(f"({prediction.basis})", "faint")] if prediction.basis else []
        block.add(span(says, "bad" if prediction.will_hit else "plain"), *basis)
    drawn = next((each for each in known if each.will_hit and each.curve), None)
    if drawn is not None:
        block.lines += picture(drawn, width)
    missing = _missing([each for each in report.predictions if each.value is None])
    if missing:
        block.add(span(missing, "faint"))
    workers = _workers(report.ladder, known)
    return block.lines + (wrapped([span(workers)], width, first="workers    ") if workers else [])


def picture(what: Prediction, width: int) -> list[Line]:
    """Return `ROWS` lines and two of captions: both axes by powers, `o` measured, `.` the law,
    `X` the prediction, `-` the limit.
    """
    columns = min(MOST_COLUMNS, width - len(LABEL) - 12)
    spots = [("o", size, value * what.times) for size, value in what.points]
    law = [(size, value * what.times) for size, value, *_ in what.curve]
    target, value = float(what.at[what.axis]), what.value or 0.0
    heights = (*(level for _, _, level in spots), *(level for _, level in law), value, what.limit)
    levels = [level for level in heights if level and level > 0]
    left, right = math.log(min(law[0][0], spots[0][1])), math.log(max(target, law[-1][0]))
    low, high = math.log(min(levels)), math.log(max(levels))
    if right <= left or high <= low:
        return []
    grid = [[" "] * columns for _ in range(ROWS)]

    def place(size: float, level: float) -> tuple[int, int]:
        row = (math.log(level) - low) / (high - low) * (ROWS - 1)
        column = (math.log(size) - left) / (right - left) * (columns - 1)
        return round(row), round(column)

    if what.limit:
        row, _ = place(target, what.limit)
        grid[row] = ["-"] * columns
    for column in range(columns):
        size = math.exp(left + (right - left) * column / (columns - 1))
        row, _ = place(target, _along(law, size))
        grid[row][column] = "."
    for mark, size, level in [*spots, ("X" if what.will_hit else "x", target, value)]:
        row, column = place(size, level)
        grid[row][column] = mark
    limit_row = place(target, what.limit)[0] if what.limit else None
    lines = []
    for row in reversed(range(ROWS)):
        level = math.exp(low + (high - low) * row / (ROWS - 1))
        if row == limit_row and what.limit is not None:
            level = what.limit
        label = amount(level, what.unit) if row in (0, ROWS - 1, limit_row) else ""
        marks = _styled("".join(grid[row]).rstrip())
        lines.append((Span(" " * len(LABEL)), Span(f"{label:>10} |", "faint"), *marks))
    first, last = f"{number(math.exp(left))} {what.axis}", f"{number(target)}"
    axis = f"{' ' * (len(LABEL) + 12)}{first}{last:>{max(1, columns - len(first))}}"
    legend = "o measured"
    if abs(what.times - 1) > 0.005:
        legend += f", times {what.times:.3g} for the planned ranks and workers"
    legend += f"; . law; {'X' if what.will_hit else 'x'} predicted"
    legend += "; - limit" if what.limit else ""
    indent = " " * (len(LABEL) + 12)
    return [*lines, (Span(axis, "faint"),), *wrapped([span(legend, "faint")], width, first=indent)]


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
    """One sentence for each reason."""
    by_reason: dict[str, dict[str, None]] = {}
    for prediction in refused:
        reason = clean(prediction.says.partition(": ")[2])
        by_reason.setdefault(reason, {})[NAMES.get(prediction.name, prediction.name)] = None
    return "; ".join(
        f"{', '.join(names)}: no prediction, {reason}" for reason, names in by_reason.items()
    )


def _workers(ladder: Sequence[LadderRow], known: Sequence[Prediction]) -> str:
    """The safe number of workers, at the measured size and at the planned one."""
    measures = [measure for row in ladder for measure in row.measures]
    measured = [measure.value for measure in measures if measure.name == "workers.safe"]
    bounded = [each for each in known if each.safe_workers is not None]
    least = min(bounded, key=lambda each: each.safe_workers or 0, default=None)
    none_fits = any(
        each.will_hit and each.name in BOUNDED and each.at.get("workers") and each not in bounded
        for each in known
    )
    says = []
    if measured:
        says.append(f"{measured[0]:.0f} for each rank and loader are safe at the measured size")
    if none_fits:
        says.append("no number of them stays below the limit at the planned size")
    elif least is not None and (least.safe_workers or 0) < least.at.get("workers", 0):
        says.append(
            f"{least.safe_workers} for each rank at the planned size"
            f" ({NAMES.get(least.name, least.name)} allows no more)"
        )
    return "; ".join(says)
