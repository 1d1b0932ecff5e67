"""Of which group a collective was that timed out, where only the lines of one rank name a group."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainprobe.pipelines import explain
from trainprobe.report.json_report import report_text

WATCHDOG = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:563] [Rank {rank}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum={number}, OpType={op}, NumelIn={size}, NumelOut={size},"
    " Timeout(ms)=600000) ran for 600077 milliseconds before timing out.\n"
)
GROUP = (
    "[rank3]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank 3] Timeout at NCCL work: {number}, last"
    " enqueued NCCL work: {number}, last completed NCCL work: {before}.\n"
)


def told(folder: Path, number: int) -> dict[str, Any]:
    lines = [WATCHDOG.format(rank=rank, number=number, op="ALLREDUCE", size=9) for rank in (1, 2)]
    lines.append(WATCHDOG.format(rank=3, number=number, op="BROADCAST", size=512))
    lines.append(GROUP.format(number=number, before=number - 1))
    (folder / "train.log").write_text("".join(lines), encoding="utf-8")
    report: dict[str, Any] = json.loads(report_text(explain(str(folder / "train.log"))))
    return report


@pytest.mark.parametrize(("number", "parts"), [(4084, True), (3, False)])
def test_one_large_number_is_of_one_group_whatever_the_operation(
    tmp_path: Path, number: int, parts: bool
) -> None:
    assert told(tmp_path, number)["says"].startswith("The ranks part at") is parts
