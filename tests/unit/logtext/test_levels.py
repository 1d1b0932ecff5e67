"""Which lines tell of no failure, whatever they name."""

from __future__ import annotations

import pytest

from trainprobe.logtext.levels import only_informs


@pytest.mark.parametrize(
    ("before", "informs"),
    [
        ("node1:18990 [3] NCCL INFO NET/Plugin : dlerror=libnccl-net.so: ", True),
        ("/env/torchvision/io/image.py:13: UserWarning: Failed to load image Python extension: ", True),
        ("UserWarning: Could not import apex: ", True),
        ("UserWarning: CUDA initialization: ", False),
        ("12:01 INFO RuntimeError: ", False),
        ("ImportError: ", False),
    ],
)  # fmt: skip
def test_who_goes_on_without_a_part_tells_of_no_failure(before: str, informs: bool) -> None:
    assert only_informs(before) is informs
