"""Which of two branches is that of few ranks, by the condition alone."""

from __future__ import annotations

import pytest

from trainprobe.causes.diverging_calls import holds_for_few
from trainprobe.stacks.source import Block


@pytest.mark.parametrize(
    ("text", "branch", "few"),
    [
        ("if rank == 3 and step >= 9:", "body", True),
        ("if step % 10 != 0 and self.is_main_process:", "body", True),
        ("if rank != 0 and step == 9:", "body", False),
        ("if rank > 1:", "body", False),
        ("if not (step == 9 and rank == 1):", "body", False),
        ("if rank != 0:", "orelse", True),
        ("if rank == 0 and step >= 9:", "orelse", False),
    ],
)
def test_the_part_about_the_rank_decides(text: str, branch: str, few: bool) -> None:
    assert holds_for_few(Block("if", 92, text, branch)) is few
