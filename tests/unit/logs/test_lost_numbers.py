"""Losses that are no number, and loss scales that have run down, in the lines of a training."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.model.diagnosis import Report
from trainprobe.pipelines import explain


def explained(folder: Path, text: str) -> Report:
    path = folder / "a.log"
    path.write_text(text, encoding="utf-8")
    return explain([str(path)])


def scales(first: int, falls: int, apart_s: int, name: str = "PARAMETER loss_scale :") -> str:
    rows = []
    for number in range(falls + 1):
        minutes, seconds = divmod(apart_s * number, 60)
        rows.append(f"DLL 2031-02-03 04:{minutes:02}:{seconds:02}.500 - {name} {first >> number}.0")
    return "\n".join(rows) + "\n"


LINE = "2031-02-03 04:0{0}:10 Epoch: 0 Step: {0}0 {1}\n"


@pytest.mark.parametrize(
    "text",
    [
        "".join(LINE.format(step, "Loss nan Lr 0.001") for step in range(1, 5)),
        "".join(LINE.format(step, "Loss 2.31 Fp16 Grad Scale:  0") for step in range(1, 5)),
        scales(1 << 19, 6, 90),
    ],
)
def test_a_run_without_numbers_is_at_risk(text: str, tmp_path: Path) -> None:
    report = explained(tmp_path, text)
    assert (report.verdict, report.causes[0].id) == ("at-risk", "nan-loss")


@pytest.mark.parametrize(
    "text",
    [
        "".join(LINE.format(step, "Loss 2.31 Fp16 Grad Scale:  512") for step in range(1, 5)),
        scales(1 << 19, 6, 1),  # the search at the start
        scales(1 << 19, 3, 90),
        scales(1 << 19, 6, 90) + scales(1 << 15, 0, 0).replace("04:", "05:"),
    ],
)
def test_a_scale_that_is_sought_or_rises_is_not(text: str, tmp_path: Path) -> None:
    report = explained(tmp_path, text)
    assert (report.verdict, report.causes) == ("undetermined", ())
