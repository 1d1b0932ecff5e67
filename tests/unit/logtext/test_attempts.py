"""Restarts."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.logtext.attempts import Attempts, Mark, attempt_of_path, mark, may_mark


def _attempts(lines: Sequence[str]) -> list[int]:
    attempts = Attempts()
    return [attempts.feed(line) for line in lines]


def test_torchrun_says_that_it_restarts() -> None:
    lines = [
        "[default] Starting worker group",
        "step 1",
        "RuntimeError: no",
        (
            "E1121 10:11:12.0 1 api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 42) of binary:"
            " /usr/bin/python"
        ),
        (
            "I1121 10:11:13.0 1 api.py:900] [default] Worker group FAILED. 3/3 attempts left; will"
            " restart worker group"
        ),
        "I1121 10:11:13.0 1 api.py:700] [default] Stopping worker group",
        "I1121 10:11:14.0 1 api.py:700] [default] Rendezvous'ing worker group",
        "I1121 10:11:15.0 1 api.py:700] [default] Rendezvous complete for workers. Result:",
        "  restart_count=1",
        "I1121 10:11:15.0 1 api.py:700] [default] Starting worker group",
        "step 1",
        (
            "I1121 10:12:13.0 1 api.py:900] [default] Worker group FAILED. 2/3 attempts left; will"
            " restart worker group"
        ),
        "  restart_count=2",
    ]
    assert _attempts(lines) == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2]


def test_two_agents_in_one_file_restart_once() -> None:
    announced = "[default] Worker group FAILED. 3/3 attempts left; will restart worker group"
    lines = [
        announced,
        "[default] Rendezvous'ing worker group",
        announced,
        "[default] Rendezvous'ing worker group",
        "  restart_count=1",
        "  restart_count=1",
    ]
    assert _attempts(lines) == [0, 1, 1, 1, 1, 1]


def test_first_lines_that_come_again_after_a_failure_begin_a_new_attempt() -> None:
    start = ["loading configuration of run 4242", "world size 2", "step 1 loss 3.0"]
    failure = ["failed (exitcode: 1) local_rank: 1 (pid: 77) of binary: /usr/bin/python"]
    assert _attempts([*start, *failure, "loading configuration of run 4311", "world size 2"]) == [
        0,
        0,
        0,
        0,
        1,
        1,
    ]
    assert _attempts([*start, "loading configuration of run 4311", "world size 2"]) == [
        0,
        0,
        0,
        0,
        0,
    ]


def test_another_rank_that_begins_after_one_has_finished_is_no_new_attempt() -> None:
    assert _attempts(
        [
            "loading configuration of run 1",
            "Training completed",
            "loading configuration of run 1",
            "step 1",
        ]
    ) == [0, 0, 0, 0]


def test_a_launcher_in_a_loop() -> None:
    begin = (
        "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid"
        " your system being overloaded"
    )
    end = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    assert _attempts(
        [begin, begin, "step 1", end, "  rank      : 0 (local_rank: 0)", begin, "step 1"]
    ) == [0, 0, 0, 0, 0, 1, 1]


def test_a_requeued_job() -> None:
    begin = "Starting elastic_operator with launch configs:"
    end = (
        "slurmstepd: error: *** JOB 42 ON node7 CANCELLED AT 2024-11-21T10:11:12 DUE TO JOB"
        " REQUEUE ***"
    )
    assert _attempts([begin, "step 1", end, begin, "step 1"]) == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("=== Attempt 2 of 3 ===", Mark("attempt", 1)),
        ("Starting attempt 3", Mark("attempt", 2)),
        ("Restart #2", Mark("attempt", 2)),
        ("TORCHELASTIC_RESTART_COUNT=1", Mark("count", 1)),
        ("Requeued SLURM job 42", Mark("requeue")),
        ("[FailurePolicy] RETRY", Mark("requeue")),
        ("`Trainer.fit` stopped: `max_steps=100` reached.", Mark("end", finished=True)),
        ("Connection attempt 2 failed", None),
        ("Attempt 2/5 to download the model", None),
        ("Attempting to unscale gradients", None),
        ("hello", None),
        ("training epoch 3 finished", None),
    ],
)
def test_marks(line: str, found: Mark | None) -> None:
    assert mark(line) == found


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("logs/x/attempt_1/3/stderr.log", 1),
        ("restart-2/out.txt", 2),
        ("logs/train.log", None),
        ("attempt_3.log", None),
    ],
)
def test_attempts_in_paths(path: str, number: int | None) -> None:
    assert attempt_of_path(path) == number


@given(st.text(max_size=200))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    assert may_mark(text) or mark(text) is None


@pytest.mark.parametrize(
    "unit", ["attempt ", "restart ", "1/1 attempts left; ", "*** JOB 1 ON ", "- "]
)
def test_no_line_takes_long(unit: str) -> None:
    began = time.process_time()
    mark(unit * (100_000 // len(unit)))
    assert time.process_time() - began < 0.5
