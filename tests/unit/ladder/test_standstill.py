"""Standing still, over series of looks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trainprobe.collect.members import Member
from trainprobe.collect.thread_history import CellLooks, ThreadHistory
from trainprobe.ladder.standstill import Standstill, asymmetric, goes_round
from trainprobe.stacks.frames import Frame

C10D = "/envs/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
MAIN = Frame("<module>", "/job/train.py", 90)


def rank(number: int, *stacks: Sequence[Frame], ticks: Sequence[int] = (10, 10)) -> ThreadHistory:
    return ThreadHistory(Member(number, 100 + number), list(stacks), list(ticks), "S")


def in_all_reduce(number: int) -> ThreadHistory:
    stack = (MAIN, Frame("step", "/job/train.py", 40), Frame("all_reduce", C10D, 2800))
    return rank(number, stack, stack)


def at_line(number: int, *lines: int, ticks: Sequence[int] = (10, 60, 260)) -> ThreadHistory:
    return rank(
        number,
        *[(MAIN, Frame("wait_for_data", "/job/train.py", line)) for line in lines],
        ticks=ticks,
    )


def looked(*some: ThreadHistory) -> CellLooks:
    return CellLooks({each.member.rank or 0: each for each in some})


def test_all_asleep_is_still_at_once() -> None:
    assert (
        Standstill().judge(
            looked(in_all_reduce(0), at_line(1, 12, 12, ticks=(5, 5))), quiet_long=False
        )
        == "still"
    )


def test_a_computing_rank_alone_goes_on() -> None:
    assert Standstill().judge(looked(at_line(0, 12, 14)), quiet_long=True) == "going_on"


def test_a_loop_that_never_sleeps_while_others_wait_is_still_in_the_second_series() -> None:
    standstill = Standstill()

    assert (
        standstill.judge(looked(in_all_reduce(0), at_line(1, 12, 13, 12)), quiet_long=True)
        == "look_again"
    )
    assert (
        standstill.judge(looked(in_all_reduce(0), at_line(1, 13, 13, 12)), quiet_long=False)
        == "look_again"
    )
    assert (
        standstill.judge(looked(in_all_reduce(0), at_line(1, 13, 12, 12)), quiet_long=True)
        == "still"
    )


def test_work_that_gets_somewhere_while_others_wait_is_not() -> None:
    standstill = Standstill()
    for lines in ((20, 31, 44), (52, 60, 71)):
        assert (
            standstill.judge(looked(in_all_reduce(0), at_line(1, *lines)), quiet_long=True)
            == "look_again"
        )


def test_a_busy_worker_of_a_waiting_rank_counts() -> None:
    waiting = rank(
        0,
        (
            MAIN,
            Frame(
                "_try_get_data",
                "/envs/lib/python3.11/site-packages/torch/utils/data/dataloader.py",
                1200,
            ),
        ),
        ticks=(1, 1),
    )
    worker = ThreadHistory(
        Member(0, 200, "loader-worker"),
        [(Frame("load", "/job/data.py", 5),), (Frame("load", "/job/data.py", 9),)],
        [0, 50],
        "R",
    )

    assert Standstill().judge(CellLooks({0: waiting}, (worker,)), quiet_long=False) == "going_on"


def test_nothing_seen_is_not_still() -> None:
    assert Standstill().judge(looked(rank(0, ticks=())), quiet_long=True) == "going_on"


def test_a_spinning_cuda_wait_is_no_computing() -> None:
    stack = (
        MAIN,
        Frame("synchronize", "/envs/lib/python3.11/site-packages/torch/cuda/__init__.py", 985),
    )

    assert rank(0, stack, stack, ticks=(0, 50)).moving() == "frozen"


@pytest.mark.parametrize(
    ("places", "round_and_round"),
    [
        ([("m", "a", 1)] * 2, True),
        ([("m", "a", 1)], False),
        ([(("m", "t.py", 9), ("f", "t.py", 1)), (("m", "t.py", 9), ("f", "t.py", 2))], True),
        ([(("m", "t.py", 9), ("f", "t.py", 1)), (("m", "t.py", 9), ("g", "t.py", 2))], False),
        ([(("m", "t.py", 9),), (("m", "t.py", 10),)], False),
        ([(("m", "t.py", 9), ("f", "t.py", line)) for line in range(6)], False),
        (
            [
                (("m", "t.py", 9), ("f", "t.py", 1)),
                (("m", "t.py", 9), ("f", "t.py", 1), ("g", "t.py", 4)),
            ],
            True,
        ),
    ],
)
def test_going_round(places: list[tuple[object, ...]], round_and_round: bool) -> None:
    assert goes_round(places) is round_and_round


def test_asymmetry() -> None:
    assert asymmetric(looked(in_all_reduce(0), at_line(1, 12, 12)), {})
    assert not asymmetric(looked(in_all_reduce(0), in_all_reduce(1)), {})
    assert asymmetric(looked(in_all_reduce(0)), {1: "left"})
    assert not asymmetric(looked(at_line(0, 1, 1)), {1: "left"})
