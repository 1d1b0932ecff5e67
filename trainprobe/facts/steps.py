"""The step that a training loop says it has reached, read from what it prints."""

from __future__ import annotations

from trainprobe.logtext.steps import has_loss, steps_in


def steps_printed(text: str) -> int | None:
    """Return the largest step number printed, at least the number of losses printed, or None when
    neither is there.

    Counting from 0 and printing a loss, or another number with decimals, is one step done. An epoch
    alone counts for nothing: an empty loader has epochs too.
    """
    largest: int | None = None
    losses = 0
    for line in text.splitlines():
        if not any(character.isdecimal() for character in line[:2000]):
            continue
        losses += has_loss(line)
        numbers = steps_in(line)
        if numbers:
            largest = max(numbers if largest is None else [largest, *numbers])
    if losses:
        return max(largest or 0, losses)
    return largest
