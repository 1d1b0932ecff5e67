"""When a live job last printed a step: whoever prints one goes on."""

from __future__ import annotations

from trainprobe.facts import Facts, Output
from trainprobe.facts.steps import steps_printed

LAST_LINES = 2  # a progress bar may stand behind the line of a step


def last_step_ago_s(facts: Facts, cell: str) -> float | None:
    """For how many seconds nothing has come in the output that was written to last, where a step
    stands at its end; None where none does.
    """
    outputs = [
        output
        for output in facts.of(Output, cell=cell)
        if output.silent_s is not None and output.tail.strip()
    ]
    if not outputs:
        return None
    last = min(outputs, key=lambda output: output.silent_s or 0.0)
    lines = [line for line in last.tail.splitlines() if line.strip()][-LAST_LINES:]
    return last.silent_s if any(steps_printed(line) is not None for line in lines) else None
