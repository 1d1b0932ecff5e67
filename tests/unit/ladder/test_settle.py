"""What is looked at once a cell has ended: places that its events name, whatever stands in them."""

from __future__ import annotations

from typing import Any

import pytest

from trainprobe.ladder.settle import _places

FRAME = {"file": "train.py", "line": 3, "function": "step"}


@pytest.mark.parametrize(
    "nonsense",
    [
        5,
        "frames",
        {"file": "a"},
        None,
        [4, None, {"file": 3, "line": -1}, {"file": "a.py", "line": None}],
    ],
)
def test_frames_that_are_none_name_no_place(nonsense: Any) -> None:
    assert (
        _places(
            {
                "event": "fail",
                "frames": nonsense,
                "handling": {"frames": nonsense},
                "where": nonsense,
            }
        )
        == []
    )
    assert _places({"event": "fail", "handling": {"frames": [FRAME]}, "frames": nonsense}) == [
        ("train.py", 3, "step")
    ]
