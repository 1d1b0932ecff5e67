"""The lines of `trainprobe doctor`, at any width."""

from __future__ import annotations

import pytest

from trainprobe.model.visibility import DOCTOR_SCHEMA, VisibilityLine, VisibilityReport
from trainprobe.report.visibility_text import visibility_text

REPORT = VisibilityReport(
    DOCTOR_SCHEMA,
    "0.1.0",
    "node1",
    "alice",
    (
        VisibilityLine("stacks", "stacks of your own jobs", "no", "It is \x1b[31mclosed. " * 9, "sudo sysctl kernel.yama.ptrace_scope=0"),
        VisibilityLine("gpus", "GPUs", "unused", "There are none."),
    ),
)  # fmt: skip


@pytest.mark.parametrize("width", [40, 60, 80, 100, 300])
def test_it_fits_and_says_what_to_type(width: int) -> None:
    text = visibility_text(REPORT, width)
    assert max(map(len, text.splitlines())) <= max(60, min(width, 100))
    assert "do  sudo sysctl kernel.yama.ptrace_scope=0\n" in text
    assert "\x1b" not in text
    assert "Without stacks a hang is told" in text
    assert "\x1b[" in visibility_text(REPORT, width, colour=True)
