"""The verdict by rule, and what stands beside it: warnings, sizes that a program outgrows, looks
that were refused.
"""

from __future__ import annotations

from typing import Any

from trainprobe.causes import built
from trainprobe.causes.priors import load_priors
from trainprobe.facts import (
    Facts,
    HostCheck,
    Interrupted,
    MainThread,
    Plan,
    ProcessState,
    RankEnding,
    RankException,
    Refusal,
    Rung,
)
from trainprobe.judge import judge
from trainprobe.model.diagnosis import Diagnosis
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame

SCRIPT = "user_script@2"
PLAN = Plan(nproc=2, host="node7", argv=("train.py",), form="launch")


def judged(*facts: Fact, refused: tuple[Refusal, ...] = ()) -> Diagnosis:
    return judge(Facts([PLAN, *facts], refused=refused), built(), load_priors())


def rung(probe: str, outcome: str, nproc: int = 1, **more: Any) -> Rung:
    return Rung(
        ("E1",),
        f"{probe}@{nproc}",
        None,
        10,
        probe,
        "Does it?",
        nproc,
        outcome,
        says=more.pop("says", ""),
        **more,
    )


def raised(rank: int, at: float) -> list[Fact]:
    frames = (Frame("step", "/job/train.py", 30),)
    return [
        RankException(("E4",), SCRIPT, rank, "KeyError", "'label'", frames, at, "witness"),
        RankEnding(("E3",), SCRIPT, rank, how="exited", code=1, at=at + 0.1, failed_at=at, order=0),
    ]


def test_all_that_applies_passed_is_healthy() -> None:
    diagnosis = judged(
        rung("host", "passed"), rung("basic_cuda", "skipped", unmet="gpu", skipped_because="no GPU")
    )

    assert (diagnosis.verdict, diagnosis.conclusive, diagnosis.causes) == ("healthy", True, ())


def test_a_warning_is_shown_and_does_not_spoil_health() -> None:
    check = HostCheck(
        ("E2",),
        "host@1",
        name="lim.nofile",
        status="warn",
        says="Open files: 1024.",
        fix="ulimit -n 65536",
    )

    diagnosis = judged(rung("host", "passed"), check)

    assert diagnosis.verdict == "healthy"
    assert [(notice.check, notice.fix) for notice in diagnosis.warnings] == [
        ("lim.nofile", "ulimit -n 65536")
    ]


def test_what_could_not_be_measured_is_not_health() -> None:
    diagnosis = judged(
        rung("host", "passed"), rung("gloo_control", "not_measured", 2, says="it gave no answer")
    )

    assert (diagnosis.verdict, diagnosis.conclusive) == ("undetermined", False)
    assert diagnosis.undecided[0].would_settle == "gloo_control: it gave no answer"


def test_a_failed_check_is_a_risk() -> None:
    assert judged(rung("host", "failed", says="the disk is full")).verdict == "at-risk"


def test_a_rank_that_raised_is_a_crash_with_its_rank() -> None:
    diagnosis = judged(rung("user_script", "crashed", 2, stopped_because="ended"), *raised(1, 5.0))

    assert (diagnosis.verdict, diagnosis.causes[0].id, diagnosis.causes[0].ranks) == (
        "crashed",
        "user-exception",
        (1,),
    )
    assert diagnosis.world.size == 2


def test_live_ranks_that_wait_are_a_hang_even_beside_a_dead_one() -> None:
    waiting: list[Fact] = [
        MainThread(
            ("E5",),
            SCRIPT,
            0,
            pid=100,
            frames=(Frame("f", "/job/train.py", 8),),
            leaf="comm-wait",
            op="all_reduce",
            where="train.py:8 in f",
            moved=False,
            looks=2,
        ),
        ProcessState(("E6",), SCRIPT, 0, pid=100, state="S"),
    ]

    soon = judged(
        rung("user_script", "crashed", 2, stopped_because="fault", silent_s=2.3),
        *raised(1, 5.0),
        *waiting,
    )
    assert (soon.verdict, soon.causes[0].id) == ("crashed", "user-exception")
    late = judged(
        rung("user_script", "crashed", 2, stopped_because="fault", silent_s=30.0),
        *raised(1, 5.0),
        *waiting,
    )
    assert late.verdict == "hung"
    diagnosis = judged(
        rung("user_script", "timed_out", 2, stopped_because="stall"), *raised(1, 5.0), *waiting
    )

    assert (diagnosis.verdict, diagnosis.causes[0].id) == ("hung", "user-exception")
    assert diagnosis.cascade[0].ranks == (0,)


def test_a_size_that_the_program_outgrows_is_told_and_not_blamed() -> None:
    diagnosis = judged(
        rung("user_script", "crashed", 1, says="rank 0 ended with exit code 1"),
        rung("user_script", "passed", 2),
    )

    assert diagnosis.verdict == "healthy"
    assert diagnosis.unexplained == (
        "user_script@1 did not pass (rank 0 ended with exit code 1), but the full size did.",
    )


def test_a_cell_with_too_few_rows_leaves_no_doubt_once_a_larger_one_passed() -> None:
    plan = Plan(nproc=2, ranks=(1, 2), rows=(2, 100), probes=("user_script",))

    def cell(ranks: int, rows: int, outcome: str) -> Rung:
        return Rung(
            ("E1",),
            f"user_script@{ranks}x{rows}",
            None,
            1000,
            "user_script",
            "Does it?",
            ranks,
            outcome,
            rows=rows,
        )

    small = [cell(1, 2, "passed"), cell(2, 2, "not_measured"), cell(1, 100, "passed")]

    assert (
        judge(Facts([plan, *small, cell(2, 100, "passed")]), built(), load_priors()).verdict
        == "healthy"
    )
    assert (
        judge(Facts([plan, *small, cell(2, 100, "not_measured")]), built(), load_priors()).verdict
        == "undetermined"
    )


def test_an_interrupted_climb_claims_nothing() -> None:
    diagnosis = judged(
        rung("host", "passed"), Interrupted(("E9",), "gloo_control@2", phase="gloo_control")
    )

    assert (diagnosis.verdict, diagnosis.extra.get("interrupted")) == ("undetermined", True)


def test_a_refused_look_is_told_only_where_it_mattered() -> None:
    denied = Refusal(
        "kernel_log", "denied", "ask for membership of group adm", cell=SCRIPT, evidence="E8"
    )
    elsewhere = Refusal("kernel_log", "denied", "another reason", cell="host@1", evidence="E9")

    diagnosis = judged(
        rung("host", "passed"),
        rung("user_script", "crashed", 2, stopped_because="ended"),
        *raised(1, 5.0),
        refused=(denied, elsewhere),
    )

    assert [row.would_settle for row in diagnosis.undecided if row.id == "cannot-look"] == [
        "kernel_log: ask for membership of group adm"
    ]
