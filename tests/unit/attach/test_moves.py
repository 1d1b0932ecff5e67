"""The sentence for whoever watches."""

from __future__ import annotations

from trainprobe.attach.progress_line import moves_line
from trainprobe.collect.members import Member
from trainprobe.collect.thread_history import ThreadHistory
from trainprobe.stacks.frames import Frame


def at(rank: int | None, *lines: int) -> ThreadHistory:
    return ThreadHistory(
        Member(rank, 100 + (rank or 0)),
        [
            (Frame("<module>", "/job/train.py", 90), Frame("step", "/job/train.py", line))
            for line in lines
        ],
    )


def test_who_stands_and_who_moved() -> None:
    says = moves_line(
        5, [at(0, 7, 7), at(1, 7, 8), at(2, 7, 7), at(3, 5, 8), at(4, 7), at(None, 7, 8)]
    )
    assert (
        says
        == "look 5: ranks 1,3 moved to train.py:8 in step; ranks 0,2 stand where they stood; rank 4"
        " could not be seen twice"
    )


def test_only_the_last_two_looks_are_compared() -> None:
    assert moves_line(3, [at(0, 7, 8, 8)]) == "look 3: rank 0 stands where it stood"


def test_many_places_are_cut() -> None:
    assert moves_line(2, [at(rank, 1, 10 + rank) for rank in range(7)]).endswith(
        "rank 3 moved to train.py:13 in step; 3 others moved too"
    )


def test_nobody() -> None:
    assert moves_line(2, []) == "look 2: no rank could be seen"


def test_who_has_ended_stands_nowhere() -> None:
    ranks = [at(0, 7, 7), at(1, 7, 7), at(2, 7, 7)]
    assert (
        moves_line(4, ranks, {ranks[1].member})
        == "look 4: rank 1 has ended; ranks 0,2 stand where they stood"
    )
