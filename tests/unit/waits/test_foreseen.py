"""From measurements at small sizes to what the planned size will do: series, ranks and workers,
limits, causes, the words of the report.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from trainprobe.causes import built
from trainprobe.causes.priors import load_priors
from trainprobe.facts import Facts
from trainprobe.facts.rows import facts_from_rows
from trainprobe.judge import judge
from trainprobe.model.diagnosis import Diagnosis
from trainprobe.model.predictions import Prediction
from trainprobe.report.json_report import read_report, report_of, report_text
from trainprobe.report.text import text_of
from trainprobe.waits.predicted_limits import predictions

GIB = 2.0**30
ROWS = (1000, 10_000, 100_000, 300_000)
PLAN = {
    "nproc": 1,
    "dataset": "data.py:make",
    "backend": "gloo",
    "probes": ["scaled_dataset"],
    "host": "node7",
}
PASSED = {
    "Rung": {
        "cell": "scaled_dataset@1",
        "rung": 90,
        "probe": "scaled_dataset",
        "outcome": "passed",
        "nproc": 1,
        "took_s": 9.0,
    }
}
LIMITS = {
    "limit.memory_bytes": 64 * GIB,
    "limit.nofile": 1024,
    "limit.pids": 4096,
    "limit.shm_bytes": 8 * GIB,
}
Row = dict[str, Any]


def measured(
    name: str,
    value: float,
    unit: str = "",
    *,
    probe: str = "scaled_dataset",
    cell: str = "",
    **labels: Any,
) -> Row:
    return {
        "Measured": {
            "cell": cell or f"{probe}@1",
            "probe": probe,
            "name": name,
            "value": float(value),
            "unit": unit,
            "labels": labels,
            "evidence": ["E9"],
        }
    }


def grown(
    name: str,
    value: Callable[[int], float],
    unit: str = "",
    *,
    noise: float = 0.01,
    rows: Iterable[int] = ROWS,
    **labels: Any,
) -> list[Row]:
    rng = random.Random(name)
    return [
        measured(name, value(size) * (1 + rng.gauss(0, noise)), unit, rows=size, **labels)
        for size in rows
    ]


def facts(
    *rows: Row,
    planned: dict[str, int] | None = None,
    limits: dict[str, float] | None = None,
    **plan: Any,
) -> Facts:
    told = [measured(name, value) for name, value in (LIMITS | (limits or {})).items()]
    return facts_from_rows(
        [{"Plan": {**PLAN, "planned": planned or {}, **plan}}, PASSED, *told, *rows]
    )


def judged(found: Facts) -> Diagnosis:
    return judge(found, built(), load_priors())


def only(found: Iterable[Prediction], name: str) -> Prediction:
    (one,) = [one for one in found if one.name == name]
    return one


def words(found: Facts) -> str:
    return text_of(report_of(judged(found), command="diagnose", case="c"))


def test_memory_of_copies_is_predicted_over_rows_ranks_and_workers_and_named() -> None:
    rows = []
    for workers, method in ((0, "none"), (2, "fork")):
        rows += grown(
            "pss",
            lambda n, w=workers: 3e8 + w * 5e7 + 2500 * n * (1 + w),  # type: ignore[misc]
            "bytes",
            workers=workers,
            method=method,
            ranks=1,
        )
    at_four = 3e8 + 2 * 5e7 + 2500 * 300_000 * 3
    rows += [measured("pss", 4 * at_four, "bytes", rows=300_000, workers=2, method="fork", ranks=4)]
    found = facts(*rows, planned={"rows": 14_800_000, "ranks": 8, "workers": 4})
    one = only(predictions(found), "pss")
    truth = 8 * (3e8 + 4 * 5e7 + 2500 * 14_800_000 * 5)
    assert one.low is not None
    assert one.high is not None
    assert one.low <= truth <= one.high
    assert one.value == pytest.approx(truth, rel=0.1)
    assert one.high < 1.5 * one.low
    assert one.copies == pytest.approx(1.0, abs=0.15)
    assert one.says.startswith("at 14.8 M rows x 8 ranks x 4 workers: memory 1.")
    assert "this node allows 64 GiB; reached at " in one.says
    done = judged(found)
    assert done.verdict == "at-risk"
    assert (done.causes[0].id, done.causes[0].named, done.causes[0].ranks) == (
        "dataset-memory-blowup",
        True,
        (),
    )


def test_memory_that_the_workers_share_is_a_kill_foretold_with_a_safe_number_of_workers() -> None:
    rows = []
    for workers, method in ((0, "none"), (2, "fork")):
        rows += grown(
            "pss",
            lambda n, w=workers: 3e8 + w * 2e9 + 2500 * n,  # type: ignore[misc]
            "bytes",
            noise=0.002,
            workers=workers,
            method=method,
            ranks=1,
        )
    done = judged(facts(*rows, planned={"rows": 15_000_000, "ranks": 1, "workers": 30}))
    one = only(done.predictions, "pss")
    assert one.copies is not None
    assert one.copies < 0.1
    assert done.causes[0].id == "host-oom-killed"
    assert done.causes[0].named
    assert one.safe_workers is not None
    assert 2 <= one.safe_workers < 16  # (64 GiB - 37.8 GB) / 2 GB is 15.4; the interval takes some
    assert f"num_workers={one.safe_workers}" in " ".join(done.causes[0].fixes[0].steps)
    assert f"workers={one.safe_workers}" in done.causes[0].fixes[0].verify


def test_what_was_measured_on_one_rank_only_is_scaled_and_said_so() -> None:
    found = facts(
        *grown("pss", lambda n: 3e8 + 2500 * n, "bytes", workers=0, method="none", ranks=1),
        planned={"rows": 1_000_000, "ranks": 4},
    )
    one = only(predictions(found), "pss")
    assert one.times == 4
    assert "only 1 rank was measured" in one.basis
    assert "only 1 rank was measured" in words(found)


def test_descriptors_that_grow_with_the_batches_are_announced_with_the_step() -> None:
    rows = grown(
        "fds",
        lambda n: 40 + n / 64,
        workers=2,
        method="fork",
        ranks=1,
        rows=(640, 6400, 19_200),
        noise=0.0,
    )
    rows += [
        measured("batches", n / 64, rows=n, workers=2, method="fork", ranks=1, rank=0)
        for n in (640, 6400, 19_200)
    ]
    done = judged(
        facts(*rows, planned={"rows": 1_000_000, "ranks": 1}, limits={"limit.nofile_hard": 524_288})
    )
    one = only(done.predictions, "fds")
    assert one.will_hit
    assert one.hits_at["step"] == pytest.approx(1024 - 40, rel=0.1)
    assert (done.verdict, done.causes[0].id, done.causes[0].named) == (
        "at-risk",
        "fd-exhaustion",
        True,
    )
    assert done.causes[0].fixes[0].title == "Close what is opened for each row or batch"
    raised = [fix.steps[0] for fix in done.causes[0].fixes if fix.title == "Raise the limit"]
    assert raised == [] or raised[0].startswith("ulimit -n 65536   (now 1024;")


def test_a_square_in_building_is_scaling_and_not_a_short_timeout() -> None:
    rows = grown(
        "build_s",
        lambda n: 0.2 + 1e-7 * n * n,
        "s",
        rows=(100, 300, 1000, 3000),
        noise=0.05,
        ranks=1,
    )
    rows += grown(
        "first_batch_s",
        lambda n: 0.1 + 0 * n,
        "s",
        rows=(100, 300, 1000, 3000),
        noise=0.05,
        workers=0,
        method="none",
        ranks=1,
    )
    found = facts(*rows, planned={"rows": 300_000})
    one = only(predictions(found), "start-up")
    assert one.value == pytest.approx(9000, rel=0.3)
    assert one.limit == 1800
    done = judged(found)
    assert (done.causes[0].id, done.causes[0].named) == ("dataset-scaling", True)
    assert "the process group's timeout is 30 min" in done.says


@pytest.mark.parametrize(
    ("plan", "extra", "limit"),
    [
        ({"backend": "nccl"}, [], 600),
        ({"backend": "gloo"}, [], 1800),
        ({"backend": "gloo", "argv": ["train.py", "--ddp_timeout", "7200"]}, [], 7200),
        ({"backend": "gloo", "argv": ["train.py", "--ddp_timeout=7200"]}, [], 7200),
        ({"backend": "gloo"}, [{"Script": {"path": "train.py", "group_timeout_s": 300.0}}], 300),
        ({"backend": "gloo"}, [{"Deadline": {"kind": "group", "seconds": 60.0}}], 60),
    ],
)
def test_the_timeout_is_the_script_s_own_where_it_says_one(
    plan: dict[str, Any], extra: list[Row], limit: float
) -> None:
    rows = grown("first_step_s", lambda n: 1 + 1e-3 * n, "s", probe="user_script", ranks=2)
    one = only(predictions(facts(*rows, *extra, planned={"rows": 3_000_000}, **plan)), "start-up")
    assert one.limit == limit
    assert one.will_hit is (limit <= 1800)


def test_a_start_up_in_step_that_is_too_long_wants_a_longer_timeout() -> None:
    rows = grown("first_step_s", lambda n: 1 + 1e-3 * n, "s", probe="user_script", ranks=2)
    done = judged(facts(*rows, planned={"rows": 3_000_000}, backend="nccl"))
    assert (done.causes[0].id, done.causes[0].named) == ("timeout-too-short", True)
    steps = [step for fix in done.causes[0].fixes for step in fix.steps]
    (minutes,) = [
        int(step.partition("minutes=")[2].partition(")")[0])
        for step in steps
        if "timedelta(minutes=" in step and "init_process_group" in step
    ]
    assert 60 <= minutes <= 180  # 50 min with their interval, and some room


def test_processes_and_shared_memory_have_their_own_causes() -> None:
    rows = [
        measured("pids", 40 * ranks, ranks=ranks, probe="user_script", cell=f"user_script@{ranks}")
        for ranks in (1, 2, 4)
    ]
    done = judged(facts(*rows, planned={"ranks": 256}))
    assert (done.causes[0].id, done.causes[0].named) == ("process-limit", True)
    shm = grown("shm", lambda n: 1e3 * n, "bytes", workers=2, method="fork", ranks=1)
    done = judged(facts(*shm, planned={"rows": 300_000_000}))
    assert (done.causes[0].id, done.causes[0].named) == ("shm-exhausted", True)
    assert "--shm-size=" in " ".join(step for fix in done.causes[0].fixes for step in fix.steps)


def test_data_that_grows_in_step_below_every_limit_is_healthy() -> None:
    rows = []
    for workers, method in ((0, "none"), (2, "fork")):
        labels: dict[str, Any] = {"workers": workers, "method": method, "ranks": 1}
        rows += grown("pss", lambda n: 3e8 + 100 * n, "bytes", **labels)
        rows += grown("fds", lambda n, w=workers: 40 + 5 * w + 0 * n, noise=0.0, **labels)  # type: ignore[misc]
        rows += grown("took_s", lambda n: 0.2 + 1e-4 * n, "s", noise=0.08, **labels)
        rows += grown("first_batch_s", lambda n: 0.3 + 0 * n, "s", noise=0.1, **labels)
    rows += grown("build_s", lambda n: 0.1 + 1e-6 * n, "s", noise=0.1, ranks=1)
    done = judged(facts(*rows, planned={"rows": 9_000_000, "ranks": 1, "workers": 2}))
    assert done.verdict == "healthy"
    assert done.causes == ()
    assert {one.name for one in done.predictions} == {"pss", "fds", "took_s", "start-up"}
    assert not any(one.will_hit for one in done.predictions)


def test_an_epoch_that_grows_with_the_square_is_at_risk_without_any_limit() -> None:
    rows = grown(
        "took_s",
        lambda n: 1e-7 * n * n,
        "s",
        rows=(300, 1000, 3000, 10_000),
        noise=0.05,
        workers=0,
        method="none",
        ranks=1,
    )
    done = judged(facts(*rows, planned={"rows": 300_000}))
    assert (done.verdict, done.causes[0].id) == ("at-risk", "dataset-scaling")
    assert "growth in step would give" in done.says


def test_without_a_planned_size_nothing_is_predicted() -> None:
    rows = grown("pss", lambda n: 3e8 + 2500 * n, "bytes", workers=0, method="none", ranks=1)
    assert predictions(facts(*rows)) == ()
    assert (
        predictions(facts(*rows, measured("dataset.full_rows", 5_000_000)))[0].at["rows"]
        == 5_000_000
    )


def test_the_rung_s_own_data_foretells_nothing() -> None:
    rows = grown("pss", lambda n: 3e8 + 2500 * n, "bytes", workers=0, method="none", ranks=1)
    assert predictions(facts(*rows, planned={"rows": 10**9}, dataset="")) == ()


def test_too_few_sizes_say_so_and_predict_nothing() -> None:
    found = facts(
        *grown(
            "pss",
            lambda n: 3e8 + 2500 * n,
            "bytes",
            rows=(100, 1000),
            workers=0,
            method="none",
            ranks=1,
        ),
        planned={"rows": 10**9},
    )
    (one,) = predictions(found)
    assert one.value is None
    assert not one.will_hit
    assert "2 sizes were measured, and a law needs 3" in one.says
    assert "memory: no prediction, 2 sizes were measured" in words(found)
    assert judged(found).verdict == "healthy"


def test_the_planned_size_itself_needs_no_law() -> None:
    found = facts(
        measured("pss", 70 * GIB, "bytes", rows=1_000_000, workers=0, method="none", ranks=1),
        planned={"rows": 1_000_000, "ranks": 1},
    )
    one = only(predictions(found), "pss")
    assert one.law == "measured"
    assert one.will_hit


def test_cells_with_a_changed_knob_are_not_of_the_series() -> None:
    rows = grown("pss", lambda n: 3e8 + 2500 * n, "bytes", probe="user_script", ranks=1)
    rows += grown(
        "pss", lambda n: 9e12 + 0 * n, "bytes", probe="user_script", ranks=1, knob="workers=0"
    )
    one = only(predictions(facts(*rows, planned={"rows": 1_000_000, "ranks": 1})), "pss")
    assert one.value == pytest.approx(2.8e9, rel=0.1)


def test_text_and_json_say_the_same() -> None:
    rows = grown("pss", lambda n: 3e8 + 2500 * n, "bytes", workers=0, method="none", ranks=1)
    found = facts(*rows, measured("workers.safe", 3), planned={"rows": 100_000_000, "ranks": 1})
    report = report_of(judged(found), command="diagnose", case="c")
    again = read_report(report_text(report))
    assert again.predictions == report.predictions
    text = " ".join(text_of(report).split())
    for one in again.predictions:
        assert " ".join(one.says.split()) in text
    assert text_of(again) == text_of(report)
    (drawn,) = [one for one in again.predictions if one.will_hit]
    assert len(drawn.curve) >= 5
    assert drawn.points == tuple(
        (row["Measured"]["labels"]["rows"], row["Measured"]["value"]) for row in rows
    )
    assert all(low <= value <= high for _, value, low, high in drawn.curve)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_picture_fits(width: int) -> None:
    rows = grown("pss", lambda n: 3e8 + 2500 * n, "bytes", workers=0, method="none", ranks=1)
    done = judged(facts(*rows, planned={"rows": 100_000_000, "ranks": 1}))
    text = text_of(report_of(done, command="diagnose", case="c"), width)
    lines = text.splitlines()
    assert all(len(line) <= width for line in lines)
    drawn = [line for line in lines if " |" in line]
    assert 3 <= len(drawn) <= 6
    assert any("X" in line for line in drawn)
    assert any("----" in line for line in drawn)
    assert sum(line.count("o") for line in drawn) >= 3


@pytest.mark.parametrize("value", [0.0, -3.0, float("nan"), float("inf"), 1e300])
def test_nonsense_is_no_prediction_and_no_fault(value: float) -> None:
    rows = grown(
        "pss", lambda n: value + 0 * n, "bytes", noise=0.0, workers=0, method="none", ranks=1
    )
    rows += [
        measured("fds", 40, rows=-5, workers=-2),
        measured("fds", 40, rows="many", workers=None),
        measured("pids", 1.0, rows=10**30),
    ]
    done = judged(facts(*rows, planned={"rows": 10**18, "ranks": 10**6, "workers": 10**6}))
    assert report_text(report_of(done, command="diagnose", case="c"))


def test_no_number_of_workers_is_blamed_for_a_slow_start() -> None:
    rows = grown("build_s", lambda n: 1e-3 * n, "s", ranks=1)
    rows += grown("first_batch_s", lambda n: 0.3 + 0 * n, "s", workers=2, method="fork", ranks=1)
    text = words(facts(*rows, planned={"rows": 30_000_000, "workers": 2}))
    assert "the process group's timeout is 30 min" in text
    assert "no number of them" not in text


def test_starts_that_scatter_announce_no_limit_far_away() -> None:
    """As a busy machine measured them: the start of a small program, 600 times below the planned
    rows.
    """
    times = {100: 6.3, 1000: 13.0, 10_000: 16.2, 100_000: 20.6}
    rows = [
        measured("first_step_s", value, "s", probe="user_script", rows=size, ranks=1)
        for size, value in times.items()
    ]
    assert judged(facts(*rows, planned={"rows": 60_000_000})).verdict == "healthy"


def test_bytes_have_one_name() -> None:
    rows = grown("pss", lambda n: 3e8 + 2500 * n, "B", probe="user_script", ranks=1)
    one = only(predictions(facts(*rows, planned={"rows": 1_000_000, "ranks": 1})), "pss")
    assert one.unit == "bytes"
    assert "GiB" in one.says
