"""The step that a training loop says it has reached, read from what it prints."""

from __future__ import annotations

import re

# `step 3`, `Step: 3/100`, `step=3`, `iter 10`, `iteration 7`, `[10/100]` behind such a word. Not `steps: 100`, which is a plan.
_STEP = re.compile(r"\b(?:global[_ ]?step|step|iter(?:ation)?|it|batch|update|round)\b[ \"']{0,2}[:=#]?[ ]{0,3}\[?[ ]{0,3}(\d{1,9})(?!\.?\d)", re.IGNORECASE)
_TQDM = re.compile(r"(?<![\d.])(\d{1,9})(?:/\d{1,9}|it) \[\d{1,3}:\d\d")
_DONE = re.compile(
    r"\b(?:after|ran|ran for|trained|trained for|did|took|completed|finished|made|finished in) (\d{1,9}) (?:steps|iterations|batches|updates)\b", re.IGNORECASE
)
_NONE = re.compile(r"\b0 (?:steps|iterations|batches|updates)\b|\bno (?:steps|batches) (?:were )?(?:run|taken|made)\b", re.IGNORECASE)
_LOSS = re.compile(r"\bloss\b['\"]?[ ]{0,2}[:=]?[ ]{0,2}[-+]?(?:\d|nan|inf)", re.IGNORECASE)
# Lines that speak of a plan or a setting, not of progress.
_PLAN = re.compile(r"\b(?:total|max|num|number of|every|warm-?up|accumulation|planned|per)\b", re.IGNORECASE)
_DECIMAL = re.compile(r"\d\.\d")
LINE_CAP = 2000


def steps_printed(text: str) -> int | None:
    """Return the largest step number printed, at least the number of losses printed, or None when neither is there.

    Counting from 0 and printing a loss, or another number with decimals, is one step done. An epoch alone counts for nothing: an empty loader has epochs too.
    """
    largest: int | None = None
    losses = 0
    for line in text.splitlines():
        line = line[:LINE_CAP]  # noqa: PLW2901 - a line of a megabyte is no step
        if not any(character.isdigit() for character in line):
            continue
        losses += _LOSS.search(line) is not None or (_STEP.search(line) is not None and _DECIMAL.search(line) is not None)
        patterns = (_TQDM, _DONE) if _PLAN.search(line) else (_STEP, _TQDM, _DONE)
        numbers = [int(match.group(1)) for pattern in patterns for match in pattern.finditer(line)]
        if _NONE.search(line):
            numbers.append(0)
        if numbers:
            largest = max(numbers if largest is None else [largest, *numbers])
    if losses:
        return max(largest or 0, losses)
    return largest
