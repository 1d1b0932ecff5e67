"""Which cause a message has a name of its own for."""

from __future__ import annotations

import re

from trainprobe.causes.finer_causes import finer_cause

SHAPES = "ValueError: Expected more than 1 value per channel when training, got input size [1, 24]"


def test_a_cause_of_crashes_takes_nothing_where_ranks_hang() -> None:
    def said(wording: str) -> object:
        return re.search(wording, SHAPES)

    assert finer_cause(said, "user-exception", mode="crash") == "model-shape-fault"
    assert finer_cause(said, "user-exception", mode="hang") == ""
