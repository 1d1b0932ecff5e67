"""Restart attempts one by one, and dumps beside logs."""

from __future__ import annotations

from pathlib import Path

from tests.unit.recorder.dumps import real
from tests.unit.waits.logs_by_hand import C10D, STEPS, closed, table, traceback
from tests.unit.waits.test_logged import explained

AGENT = "torch/distributed/elastic/agent/server/api.py"
RESTART = (
    "E1120 10:00:05.000000 4000 torch/distributed/elastic/multiprocessing/api.py:874] failed"
    " (exitcode: 1) local_rank: 1 (pid: 3001) of binary: /env/bin/python\nI1120 10:00:06.000000"
    f" 4000 {AGENT}:889] [default] Worker group FAILED. 2/3 attempts left; will restart worker"
    f" group\nI1120 10:00:06.100000 4000 {AGENT}:600] [default] Rendezvous'ing worker group\n"
)
FAILS = STEPS + traceback("KeyError", "'label'", prefix="[rank1]: ") + closed(0)
IN_USE = "The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)."


def test_the_last_attempt_decides_and_the_earlier_one_is_told(tmp_path: Path) -> None:
    report = explained(
        {
            "job.log": (
                FAILS
                + RESTART
                + STEPS
                + "[rank0]: step 100/100 loss 0.1\n[rank0]: Training completed.\n"
            )
        },
        tmp_path,
    )
    assert (report.verdict, report.causes) == ("healthy", ())
    assert any("earlier attempt" in says and "KeyError" in says for says in report.unexplained)


def test_another_failure_of_the_last_attempt_comes_first(tmp_path: Path) -> None:
    last = (
        STEPS
        + traceback("ValueError", "the schedule has no phase", prefix="[rank0]: ")
        + table((0, 1), (1, -15))
    )
    report = explained({"job.log": FAILS + RESTART + last}, tmp_path)
    assert "ValueError" in report.suspects[0].says
    assert "KeyError" in report.suspects[1].says


def test_the_same_failure_again_is_told_of_the_last_attempt(tmp_path: Path) -> None:
    report = explained({"job.log": FAILS + RESTART + FAILS + table((1, 1), (0, 1))}, tmp_path)
    assert report.says.startswith("Rank 1 raised KeyError")
    assert report.suspects[1].says.startswith("Attempt 0: rank 1 raised KeyError")
    assert [cause.id for cause in report.causes if cause.named] == ["user-exception"]


def test_a_port_that_the_failed_attempt_still_holds_is_no_first_failure(tmp_path: Path) -> None:
    last = traceback("RuntimeError", IN_USE, prefix="[rank0]: ", leaf=C10D) + table((0, 1))
    report = explained({"job.log": FAILS + RESTART + last}, tmp_path)
    assert [cause.id for cause in report.causes if cause.named] == ["user-exception", "port-in-use"]


def test_a_first_failure_in_the_log_stands_before_dumps(tmp_path: Path) -> None:
    for rank, content in real("missing").items():
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(content)
    names = {f"nccl_trace_rank_{rank}" for rank in real("missing")}
    from trainprobe.pipelines import explain

    alone = explain([str(tmp_path / name) for name in sorted(names)])
    assert alone.verdict == "hung"
    (tmp_path / "job.log").write_text(
        traceback("KeyError", "'label'", prefix="[rank1]: "), encoding="utf-8"
    )
    both = explain([str(tmp_path)])
    assert (both.verdict, both.causes[0].id, both.suspects[0].ranks) == (
        "crashed",
        "user-exception",
        (1,),
    )
    (tmp_path / "job.log").write_text(STEPS, encoding="utf-8")
    quiet = explain([str(tmp_path)])
    assert (quiet.verdict, quiet.suspects[0].ranks) == (alone.verdict, alone.suspects[0].ranks)
