"""Which of several jobs: asked by number, where somebody sits at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from trainprobe.errors import UsageError


def at_a_terminal() -> Callable[[Sequence[str]], int] | None:
    """Return the question, or None where nobody could answer it."""
    return ask if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty() else None


def ask(lines: Sequence[str]) -> int:
    """List the jobs with numbers on stderr and return the place of the chosen one. Raises UsageError for an answer that names none."""
    for number, line in enumerate(lines, 1):
        sys.stderr.write(f" {number:2}  {line}\n")
    sys.stderr.write(f"Which one? 1-{len(lines)}: ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if not (answer.isascii() and answer.isdigit() and len(answer) < 4 and 1 <= int(answer) <= len(lines)):
        raise UsageError("No job was chosen.", "Name one: trainprobe attach PID.")
    return int(answer) - 1
