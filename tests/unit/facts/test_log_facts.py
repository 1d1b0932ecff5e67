"""Facts of kept log lines: whose, when, in which order, and what ended how."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.waits.logs_by_hand import table, traceback, watchdog
from trainprobe.facts import (
    CollectiveCall,
    Facts,
    Given,
    LogEvent,
    LogFailure,
    LogJob,
    LogProgress,
    OomKill,
    RankEnding,
    RankException,
    Xid,
    read,
)
from trainprobe.model.evidence import Evidence


def extract(
    *lines: str,
    path: str = "a.log",
    file: int = 0,
    rank: int | None = None,
    at: list[float | None] | None = None,
    cell: str = "job",
) -> Evidence:
    rows = [
        [number, at[number - 1] if at else None, None, "", line]
        for number, line in enumerate(lines, 1)
    ]
    data = {
        "path": path,
        "file": file,
        "rank": rank,
        "host": "",
        "rows": rows,
        "lines": len(rows),
        "last_line": len(rows),
        "has_end": True,
    }
    return Evidence(f"E{file + 1}", "log.extract", cell=cell, data=data)


def facts_of(*lines: str, **more: Any) -> Facts:
    return read([extract(*lines, **more)])


def test_a_watchdogs_own_words_name_the_rank() -> None:
    facts = facts_of(watchdog(3, 7).partition(":")[2].strip())
    assert {event.rank for event in facts.of(LogEvent)} == {3}


def test_alike_lines_are_one_event_with_their_number() -> None:
    lines = [f"RuntimeError: CUDA error: out of memory at step {step}" for step in range(5)]
    found = [event for event in facts_of(*lines).of(LogEvent) if event.event == "cuda-oom"]
    assert sum(event.count for event in found) >= 5
    assert len(found) < 5
    assert found[0].seen_at == "a.log:1"


def test_numbers_that_do_not_count_up_are_no_line_numbers() -> None:
    assert facts_of("3: ValueError: no", "1: ValueError: never").of(RankException) == ()
    assert [
        fact.type
        for fact in facts_of("7: ValueError: labels are empty", "8: done with it").of(RankException)
    ] == ["ValueError"]


@pytest.mark.parametrize(
    ("line", "rank", "code", "signal"),
    [
        ("srun: error: node7: task 3: Exited with exit code 1", 3, 1, None),
        ("srun: error: node7: task 3: Segmentation fault (core dumped)", 3, None, 11),
        ("srun: error: node7: task 3: Exited with exit code 137", 3, None, 9),
        (
            (
                "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with exit"
                " code 5"
            ),
            2,
            5,
            None,
        ),
        (
            (
                "mpirun noticed that process rank 1 with PID 77 on node n2 exited on signal 9"
                " (Killed)."
            ),
            1,
            None,
            9,
        ),
        (
            "run.sh: line 12:  4711 Aborted                 (core dumped) python train.py",
            None,
            None,
            6,
        ),
        ("Killed", None, None, 9),
        ("command terminated with exit code 137", None, None, 9),
        (
            (
                "[ERROR] [launch.py:325:sigkill_handler] ['/env/bin/python', '-u', 'fit.py',"
                " '--local_rank=3'] exits with return code = -9"
            ),
            3,
            None,
            9,
        ),
    ],
)
def test_ends_in_other_peoples_words(
    line: str, rank: int | None, code: int | None, signal: int | None
) -> None:
    ending = facts_of(line).one(RankEnding)
    assert ending is not None
    assert (ending.rank, ending.code, ending.signal) == (rank, code, signal)


def test_tasks_are_unfolded() -> None:
    found = facts_of("srun: error: node7: tasks 0-2,5: Killed").of(RankEnding)
    assert sorted(ending.rank or 0 for ending in found) == [0, 1, 2, 5]
    assert all(ending.host == "node7" for ending in found)


def test_torchruns_table_of_the_first_versions() -> None:
    lines = [
        "***************************************",
        "            fit.py FAILED              ",
        "=======================================",
        "Root Cause:",
        "[0]:",
        "  time: 2021-09-20_12:00:00",
        "  rank: 2 (local_rank: 2)",
        "  exitcode: -9 (pid: 812)",
        "  error_file: <N/A>",
        '  msg: "Signal 9 (SIGKILL) received by PID 812"',
        "=======================================",
        "Other Failures:",
        "  <NO_OTHER_FAILURES>",
        "***************************************",
    ]
    ending = facts_of(*lines).one(RankEnding)
    assert ending is not None
    assert (ending.rank, ending.signal, ending.pid, ending.phase) == (2, 9, 812, "first")


def test_what_the_launcher_ended_is_no_failure_of_its_own() -> None:
    facts = facts_of(*table((2, 1), (0, -15), (1, -15)).splitlines())
    assert [ending.rank for ending in facts.of(RankEnding) if ending.by_launcher] == [0, 1]
    assert [failure.rank for failure in facts.of(LogFailure) if not failure.echo] == [2]


def test_two_files_are_put_in_order_by_their_clocks() -> None:
    late = extract(
        *traceback("ValueError", "late").splitlines(), path="r0.log", file=0, rank=0, at=[200.0] * 6
    )
    early = extract(
        *traceback("KeyError", "early").splitlines(), path="r1.log", file=1, rank=1, at=[100.0] * 6
    )
    failures = read([late, early]).of(LogFailure)
    assert [failure.rank for failure in sorted(failures, key=lambda one: one.order)] == [1, 0]


def test_steps_after_an_exception_mean_that_it_was_handled() -> None:
    lines = [
        "step 1/9 loss 1.0",
        *traceback("OSError", "tracker").splitlines(),
        "step 2/9 loss 1.0",
        "step 3/9 loss 1.0",
    ]
    (exception,) = facts_of(*lines).of(RankException)
    assert exception.handled
    assert facts_of(*lines).of(LogFailure) == ()


def test_progress_of_an_inner_bar_is_not_that_of_the_training() -> None:
    progress = facts_of(
        "step 100/1000 loss 2.0",
        "Validating:  50%|#####     | 5/10 [00:01<00:01,  5.00it/s]",
        "step 200/1000 loss 1.9",
    ).one(LogProgress)
    assert progress is not None
    assert (progress.step, progress.of) == (200, 1000)


def test_world_and_launcher_from_what_stands_there() -> None:
    job = facts_of("[rank 0] initialized, world_size=16", "srun: error: node7: task 3: Killed").one(
        LogJob
    )
    assert job is not None
    assert (job.world_size, job.launcher) == (16, "slurm")


def test_kernel_lines_among_others() -> None:
    facts = facts_of(
        "NVRM: Xid (PCI:0000:4e:00): 79, pid=11, GPU has fallen off the bus.",
        "Out of memory: Killed process 4711 (python) total-vm:9kB, anon-rss:8kB",
    )
    assert [fact.code for fact in facts.of(Xid)] == [79]
    assert [fact.pid for fact in facts.of(OomKill)] == [4711]


def test_given_values_are_numbers_in_their_unit() -> None:
    record = Evidence(
        "E1",
        "given",
        data={
            "limit.memlock_bytes": "64K",
            "limit.nofile": "unlimited",
            "version.torch": "2.4.1",
            "source": "env-file",
        },
    )
    found = {fact.name: fact for fact in read([record]).of(Given)}
    assert found["limit.memlock_bytes"].number == 65536
    assert found["limit.nofile"].number == float("inf")
    assert found["version.torch"].number is None
    assert found["version.torch"].source == "env-file"


CELLS = st.one_of(
    st.none(),
    st.integers(-5, 10**12),
    st.floats(allow_nan=True),
    st.text(max_size=40),
    st.lists(st.integers(), max_size=2),
)
LINES = st.one_of(
    st.text(max_size=80),
    st.sampled_from(
        [
            *traceback("ValueError", "x").splitlines(),
            *table((1, -9)).splitlines(),
            "Killed",
            "step 3/9",
            "srun: error: n: tasks 9-1: Killed",
        ]
    ),
)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS, LINES), max_size=30), CELLS, CELLS)
@settings(max_examples=150, deadline=None)
def test_no_rows_make_the_readers_fall(
    rows: list[tuple[object, ...]], file: object, rank: object
) -> None:
    data = {
        "path": "a.log",
        "file": file,
        "rank": rank,
        "rows": [list(row) for row in rows],
        "lines": len(rows),
        "has_end": True,
    }
    facts = read([Evidence("E1", "log.extract", cell="job", data=data)])
    assert all(isinstance(failure.order, int) for failure in facts.of(LogFailure))


def test_many_lines_of_many_ranks_take_seconds() -> None:
    records = [
        extract(
            *[f"step {step}/100 loss 2.0" for step in range(55)],
            *traceback("RuntimeError", "Connection closed by peer").splitlines(),
            path=f"r{rank}.log",
            file=rank,
            rank=rank,
        )
        for rank in range(400)
    ]
    began = time.process_time()
    facts = read(records)
    assert time.process_time() - began < 15
    assert len(facts.of(LogProgress)) == 400


def test_lines_of_a_log_of_gigabytes_keep_their_numbers_and_their_order_before_the_next_file() -> (
    None
):
    rows = [[30_000_000, None, None, "", "ValueError: no such split"]]
    data = {
        "path": "a.log",
        "file": 0,
        "rank": None,
        "host": "",
        "rows": rows,
        "lines": 30_000_000,
        "last_line": 30_000_000,
        "has_end": True,
    }
    facts = read(
        [
            Evidence("E1", "log.extract", cell="job", data=data),
            extract("KeyError: 3", path="b.log", file=1),
        ]
    )
    found = {fact.type: fact for fact in facts.of(RankException)}
    assert found["ValueError"].seen_at == "a.log:30000000"
    assert (found["ValueError"].place or 0) < (found["KeyError"].place or 0)


@pytest.mark.parametrize("at", [60, 113, 128, 133])
def test_a_watchdogs_message_that_a_terminal_broke_is_whole(at: int) -> None:
    line = watchdog(2, 49209).strip()
    at = line.index("WorkNCCL(") + at - 60 + len("WorkNCCL(")
    facts = facts_of(line[:at], line[at:])
    (call,) = facts.of(CollectiveCall)
    assert (call.rank, call.number, call.numel_in, call.timeout_s) == (2, 49209, 1024, 600)


def test_a_gather_tells_of_how_many_ranks_its_group_has() -> None:
    line = watchdog(1, 7, "ALLGATHER", 43).replace("NumelOut=43", "NumelOut=172")
    job = facts_of(line).one(LogJob)
    assert job is not None
    assert job.world_size == 4


def test_work_that_stands_without_any_error_is_a_call_that_was_given_up() -> None:
    line = (
        "[rank1]:[E1120 10:40:00.22 ProcessGroupNCCL.cpp:2252] [PG ID 1 PG GUID 1 Rank 1]  failure"
        " detected by watchdog at work sequence id: 16 PG status: last enqueued work: 18, last"
        " completed work: 15"
    )
    (call,) = facts_of(line).of(CollectiveCall)
    assert (call.rank, call.number, call.pending) == (1, 16, True)
    error = "RuntimeError: NCCL error: unhandled system error"
    assert not facts_of(line, error).of(CollectiveCall)


def test_a_text_that_begins_with_an_exception_holds_all_of_its_message() -> None:
    lines = ("ValueError: bad path", "Provide another one.", "", "Epoch 2 begins")
    (raised,) = facts_of(*lines).of(RankException)
    assert raised.message == "bad path\nProvide another one."
    (raised,) = facts_of("step 1", *lines).of(RankException)
    assert raised.message == "bad path"
