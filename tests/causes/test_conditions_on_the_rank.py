"""For how many ranks a condition holds, by its words."""

from __future__ import annotations

import pytest

from trainprobe.causes.diverging_calls import holds_for_few
from trainprobe.facts import Block


@pytest.mark.parametrize(
    ("text", "inside", "otherwise"),
    [
        ("if rank == 0:", True, False),
        ("if not rank and it >= 7:", True, False),
        ("if not dist.get_rank():", True, False),
        ("if rank:", False, True),
        ("if rank != 0:", False, True),
        ("if not is_main_process:", False, True),
        ("if not self.is_first_rank:", False, True),
    ],
)
def test_for_one_rank_or_for_all_others(text: str, *, inside: bool, otherwise: bool) -> None:
    assert holds_for_few(Block("if", 1, text, "body")) is inside
    assert holds_for_few(Block("if", 1, text, "orelse")) is otherwise
