"""Numbers of batches that the ranks print of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.waits.logs_by_hand import watchdog
from trainprobe.facts.counts_by_rank import counts_apart, parse_counts
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import JOB
from trainprobe.pipelines import explain


def counted(*lines: str) -> list[tuple[int | None, int]]:
    rows = [[number, None, None, "", line] for number, line in enumerate(lines, 1)]
    data = {"path": "job.log", "rows": rows}
    record = Evidence("E1", "log.extract", JOB, source="job.log", data=data)
    return [(one.rank, one.number) for one in counts_apart(parse_counts(record))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "apart"),
    [
        (("rank 0 got 35 batches", "rank 1 got 16 batches"), [(0, 35), (1, 16)]),
        (("- rank0: 312", "- rank1: 244", "- rank2: 244"), [(0, 312), (1, 244), (2, 244)]),
        (("rank 1: len(loader) = 8", "rank 0: len(loader) = 9"), [(0, 9), (1, 8)]),
        (("rank 0: 7", "rank 1: 8"), []),  # of what, nobody knows
        (("rank 0 got 35 batches", "rank 1 got 35 batches"), []),
        (("rank 0 did 3 steps", "rank 0 did 4 steps", "rank 1 did 3 steps"), []),  # progress
        (
            (
                "Epoch 2, Rank 0, of 3: 40batch [00:04, 10.02batch/s]",
                "Epoch 2, Rank 2, of 3: 40batch [00:04, 10.01batch/s]",
                "Epoch 2, Rank 1, of 3: 31batch [30:02, 58.13s/batch]",
            ),
            [(0, 40), (1, 31), (2, 40)],
        ),
        (  # drawn at different times, and both go on
            ("Rank 0: 40it [00:04, 10.02it/s]", "Rank 1: 36it [00:03, 9.98it/s]"),
            [],
        ),
        (  # of one rank, the last
            (
                "Rank 0: 40it [00:04, 10.02it/s]",
                "Rank 1: 36it [00:20, 9.98it/s]",
                "Rank 1: 40it [00:24, 9.98it/s]",
            ),
            [],
        ),
        (("rank 0 took 3.5 samples/s", "rank 1 took 3.6 samples/s"), []),
    ],
)
def test_counts_that_differ_are_found(lines: tuple[str, ...], apart: list[tuple[int, int]]) -> None:
    assert counted(*lines) == apart


def test_unequal_batches_explain_a_hang_and_equal_ones_do_not(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    for second, named in ((16, True), (35, False)):
        log.write_text(
            f"[rank0]: got 35 batches\n[rank1]: got {second} batches\n" + watchdog(0, 99)
        )
        points = {cause.id: cause.points for cause in explain(str(log)).causes}
        assert (points.get("uneven-inputs", 0) >= 10) == named


def test_counts_alone_are_a_log(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("- rank0: 312\n- rank1: 244\n- rank2: 244\nException in thread Thread-16:\n")
    report = explain(str(log))
    assert (report.verdict, report.causes[0].id) == ("undetermined", "uneven-inputs")
