"""Which lines of a program take a lock of Python, by their text, when a thread sleeps in a futex
right below them.
"""

from __future__ import annotations

import pytest

from trainprobe.causes.processes.fork_inherited_lock import TAKES_A_LOCK


@pytest.mark.parametrize(
    "line",
    [
        "with self._lock:",
        "with counting:",
        "    with self.cache.guarded:",
        "with tables[name]:",
        "self.turn.acquire()",
        "logger.info('x')",
    ],
)
def test_a_line_that_takes_a_lock(line: str) -> None:
    assert TAKES_A_LOCK.search(line)


@pytest.mark.parametrize(
    "line",
    [
        "return tokenizer(text)",
        "with torch.no_grad():",
        "x = a @ b",
        "for batch in loader:",
        "with open(path) as file:",
    ],
)
def test_a_line_that_takes_none(line: str) -> None:
    assert not TAKES_A_LOCK.search(line)
