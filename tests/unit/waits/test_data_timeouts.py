"""A size of the user's data that did not end in its time: a point of its law, or a stop."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.unit.waits.test_foreseen import PLAN, Row, grown, judged, measured, only
from trainprobe.facts import Facts
from trainprobe.facts.rows import facts_from_rows
from trainprobe.model.diagnosis import Diagnosis
from trainprobe.waits.data_timeouts import stop_says, wait_expected
from trainprobe.waits.predicted_limits import predictions

CELL = "scaled_dataset@1"
SIZES = (2, 8, 32, 128, 512, 2048, 8192)
ASKED = {"rows": [2, 2_000_000]}


def quadratic(rows: int) -> float:
    return 2e-7 * rows**2


def facts(build_s: Callable[[int], float], stood_at: int, waited_s: float, **plan: object) -> Facts:
    """The sizes below `stood_at` were built and read; that one was not built when its time was
    over.
    """
    sizes = [rows for rows in SIZES if rows < stood_at]
    failed = {
        "Rung": {
            "cell": CELL,
            "rung": 90,
            "probe": "scaled_dataset",
            "outcome": "failed",
            "nproc": 1,
        }
    }
    says = f"The factory d.py:make ({stood_at} rows) made no progress for {waited_s:.0f} s"
    details = {"given": "dataset", "kind": "stood", "rows": stood_at, "step": "factory"}
    failure = {
        "ProbeFailure": {
            "cell": CELL,
            "probe": "scaled_dataset",
            "says": says,
            "details": details,
            "evidence": ["E9"],
        }
    }
    rows: list[Row] = [
        {"Plan": {**PLAN, "backend": "nccl", **plan}},
        failed,
        failure,
        *grown("build_s", lambda size: 0.002 + build_s(size), "s", rows=sizes, ranks=1),
        *grown("first_batch_s", lambda _: 0.01, "s", rows=sizes, ranks=1, workers=0, method="none"),
        measured("build_s", waited_s, "s", rows=stood_at, ranks=1, at_least=True),
    ]
    return facts_from_rows(rows)


def first(done: Diagnosis) -> tuple[str, str, bool]:
    return done.verdict, done.causes[0].id, done.causes[0].named


def test_a_size_that_the_law_lets_expect_is_one_of_its_points() -> None:
    found = facts(quadratic, 16384, 50.0, **ASKED)
    assert wait_expected(found, CELL) is True
    done = judged(found)
    assert first(done) == ("at-risk", "dataset-scaling", True)
    assert "rank-stuck" not in [cause.id for cause in done.causes]
    start = only(done.predictions, "start-up")
    assert start.low is not None
    assert start.high is not None
    assert start.low <= quadratic(2_000_000) <= start.high  # of the rows that were asked for


@pytest.mark.parametrize("build_s", [quadratic, lambda rows: 1e-5 * rows, lambda _: 0.5])
def test_a_size_that_takes_far_longer_than_its_law_stands_still(
    build_s: Callable[[int], float],
) -> None:
    found = facts(build_s, 8192, 90.0)
    assert wait_expected(found, CELL) is False
    assert "8.19 k rows should take" in stop_says(found, CELL)
    done = judged(found)
    assert first(done) == ("at-risk", "rank-stuck", True)
    assert "dataset-scaling" not in [cause.id for cause in done.causes]


@pytest.mark.parametrize(
    "build_s", [lambda rows: 1e-4 * rows, lambda rows: 1e-5 * rows * math.log2(rows)]
)
def test_growth_in_step_that_ran_out_of_time_is_neither_scaling_nor_a_stop(
    build_s: Callable[[int], float],
) -> None:
    found = facts(build_s, 16384, 0.9 * build_s(16384))
    assert wait_expected(found, CELL) is True
    assert not [cause.id for cause in judged(found).causes if cause.named]


def test_too_few_sizes_leave_the_wait_open() -> None:
    found = facts(quadratic, 32, 90.0)
    assert wait_expected(found, CELL) is None
    assert first(judged(found))[1] == "rank-stuck"


def test_milliseconds_that_grow_steeply_announce_nothing() -> None:
    """They do on a busy machine, and the rows that were asked for are a thousand times as many."""
    took = [
        measured("took_s", value, "s", rows=rows, ranks=1, workers=2, method="fork")
        for rows, value in ((128, 0.013), (512, 0.044), (2048, 0.82))
    ]
    found = facts_from_rows([{"Plan": {**PLAN, **ASKED}}, *took])
    assert only(predictions(found), "took_s").will_hit is False


def test_rows_that_were_not_reached_are_foretold_for_times_alone() -> None:
    """Without a planned size, a descriptor more at 32 rows is no matter of millions."""
    fds = [
        measured("fds", value, "", rows=rows, ranks=1, workers=2, method="fork")
        for rows, value in ((2, 18), (8, 18), (32, 21))
    ]
    found = facts_from_rows([{"Plan": {**PLAN, **ASKED}}, *fds])
    assert predictions(found) == ()
