"""From where the ranks stand to who is to blame: hangs, crashes, echoes and camps."""

from __future__ import annotations

from trainprobe.facts import (
    Facts,
    FatalSignal,
    LogEvent,
    MainThread,
    Plan,
    ProcessState,
    RankEnding,
    RankException,
    Rung,
)
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame
from trainprobe.waits import SuspectGroup, suspect_groups

CELL = "user_script@4"


def rung(
    outcome: str = "timed_out", nproc: int = 4, stopped: str = "stall", cell: str = CELL
) -> Rung:
    return Rung(
        ("E1",),
        cell,
        None,
        100,
        "user_script",
        "Does it run?",
        nproc,
        outcome,
        stopped_because=stopped,
    )


def in_collective(
    rank: int, op: str = "all_reduce", where: str = "train.py:88 in step"
) -> list[Fact]:
    frames = (
        Frame("step", "/job/train.py", 88),
        Frame(op, "/site-packages/torch/distributed/distributed_c10d.py", 3252),
    )
    return [
        MainThread(
            (f"E{rank}1",),
            CELL,
            rank,
            pid=100 + rank,
            frames=frames,
            leaf="comm-wait",
            op=op,
            where=where,
            moved=False,
            looks=2,
        ),
        ProcessState((f"E{rank}2",), CELL, rank, pid=100 + rank, state="S", looks=2),
    ]


def elsewhere(
    rank: int, leaf: str = "sleep", where: str = "train.py:12 in prepare", state: str = "S"
) -> list[Fact]:
    return [
        MainThread(
            (f"E{rank}1",),
            CELL,
            rank,
            pid=100 + rank,
            frames=(Frame("f", "/job/train.py", 1),),
            leaf=leaf,
            where=where,
            moved=False,
            looks=2,
        ),
        ProcessState(
            (f"E{rank}2",),
            CELL,
            rank,
            pid=100 + rank,
            state=state,
            looks=2,
            stopped_looks=2 if state == "T" else 0,
        ),
    ]


def ended(
    rank: int, at: float, code: int | None = 1, signal: int | None = None, **more: object
) -> RankEnding:
    how = "signalled" if signal else "exited"
    return RankEnding(
        (f"E{rank}3",),
        CELL,
        rank,
        how=how,
        code=None if signal else code,
        signal=signal,
        at=at,
        failed_at=at,
        **more,  # type: ignore[arg-type]
    )


def raised(
    rank: int, type_: str, at: float, echo: bool = False, where: str = "/job/train.py"
) -> RankException:
    return RankException(
        (f"E{rank}4",), CELL, rank, type_, "", (Frame("step", where, 30),), at, "witness", echo=echo
    )


def groups(*facts: Fact | list[Fact]) -> tuple[SuspectGroup, ...]:
    flat: list[Fact] = [Plan(nproc=4, host="node7")]
    for fact in facts:
        flat += fact if isinstance(fact, list) else [fact]
    return suspect_groups(Facts(flat))


def test_the_rank_outside_the_collective_is_the_sink() -> None:
    (group,) = groups(rung(), *(in_collective(rank) for rank in (0, 1, 3)), elsewhere(2))

    assert (group.ranks, group.how, group.mode, group.victims) == (
        (2,),
        "never-joined",
        "hang",
        (0, 1, 3),
    )
    assert [link.awaited for link in group.chain] == ["all_reduce", "rank 2"]


def test_a_stopped_rank_is_the_sink_even_inside_a_collective() -> None:
    stopped = [
        (
            fact
            if not isinstance(fact, ProcessState)
            else ProcessState(("E9",), CELL, 1, pid=101, state="T")
        )
        for fact in in_collective(1)
    ]

    (group,) = groups(rung(), *(in_collective(rank) for rank in (0, 2, 3)), stopped)

    assert (group.ranks, group.victims) == ((1,), (0, 2, 3))


def test_two_collectives_wait_for_each_other_and_the_smaller_camp_is_suspected() -> None:
    (group,) = groups(
        rung(),
        *(in_collective(rank) for rank in (0, 2, 3)),
        in_collective(1, "broadcast", "train.py:40 in log"),
    )

    assert (group.how, group.ranks, group.camps) == ("cycle", (1,), ((1,), (0, 2, 3)))


def test_two_equal_camps_are_both_suspected() -> None:
    two = [in_collective(0), in_collective(1, "barrier", "train.py:40 in log")]

    (group,) = groups(rung(nproc=2), *two)

    assert group.ranks == (0, 1)


def test_all_ranks_inside_one_collective_blame_no_rank_more_than_another() -> None:
    (group,) = groups(rung(), *(in_collective(rank) for rank in range(4)))

    assert (group.how, group.ranks, group.victims) == ("stuck-inside", (0, 1, 2, 3), ())


def test_ranks_frozen_in_different_places_are_two_groups() -> None:
    found = groups(
        rung(),
        in_collective(0),
        in_collective(1),
        elsewhere(2),
        elsewhere(3, "file-io", "train.py:70 in save"),
    )

    assert {group.ranks for group in found} == {(2,), (3,)}


def test_a_rank_that_was_never_seen_is_named() -> None:
    (group,) = groups(rung(), *(in_collective(rank) for rank in (0, 1, 2)))

    assert (group.ranks, group.how) == ((3,), "not-visible")


def test_a_dead_rank_is_the_root_of_a_hang() -> None:
    (group,) = groups(rung(), ended(1, 5.0, signal=9), *(in_collective(rank) for rank in (0, 2, 3)))

    assert (group.ranks, group.how, group.mode, group.victims) == (
        (1,),
        "failed-first",
        "crash",
        (0, 2, 3),
    )


def test_echoes_do_not_hide_the_exception_that_came_first_though_it_left_last() -> None:
    echoes = [
        fact
        for rank in (0, 2, 3)
        for fact in (raised(rank, "RuntimeError", 5.1, echo=True), ended(rank, 5.3))
    ]

    (group,) = groups(
        rung("crashed", stopped="fault"), raised(1, "KeyError", 5.0), ended(1, 5.9), *echoes
    )

    assert (group.ranks, group.how, group.mode) == ((1,), "failed-first", "crash")
    assert "KeyError" in group.says


def test_a_signal_after_an_echo_is_an_echo() -> None:
    victim = [raised(0, "RuntimeError", 5.1, echo=True), ended(0, 5.2, signal=6)]

    (group,) = groups(
        rung("crashed", nproc=2, stopped="fault"),
        victim,
        raised(1, "KeyError", 5.15),
        ended(1, 5.6),
    )

    assert group.ranks == (1,)


def test_one_exception_on_every_rank_is_the_codes_own() -> None:
    everyone = [
        fact
        for rank in range(4)
        for fact in (raised(rank, "KeyError", 5.0 + rank), ended(rank, 6.0 + rank))
    ]

    (group,) = groups(rung("crashed", stopped="ended"), *everyone)

    assert (group.ranks, group.victims) == ((), ())


def test_a_rank_that_left_with_code_zero_is_behind_the_echoes() -> None:
    echoes = [
        fact
        for rank in (0, 2, 3)
        for fact in (raised(rank, "RuntimeError", 5.1, echo=True), ended(rank, 5.3))
    ]

    (group,) = groups(rung("crashed", stopped="ended"), ended(1, 5.0, code=0), *echoes)

    assert (group.ranks, group.how, group.victims) == ((1,), "left", (0, 2, 3))


def test_an_abort_inside_a_collective_is_told_apart_by_place() -> None:
    aborted: list[Fact] = [
        ended(1, 5.0, signal=6),
        FatalSignal(("E15",), CELL, 1, signal_name="SIGABRT"),
        LogEvent(("E16",), CELL, 1, signature="gloo-sizes", event="data-size-mismatch"),
        MainThread(
            ("E15",),
            CELL,
            1,
            leaf="comm-wait",
            op="all_reduce",
            where="train.py:28 in report",
            source="faulthandler",
        ),
    ]
    echoes = [
        fact
        for rank in (0, 2, 3)
        for fact in (raised(rank, "RuntimeError", 5.1, echo=True), ended(rank, 5.3))
    ]

    (group,) = groups(rung("crashed", stopped="ended"), aborted, *echoes)

    assert (group.how, group.ranks, group.camps) == ("cycle", (1,), ((1,), (0, 2, 3)))


def test_of_two_failing_sizes_the_larger_is_judged() -> None:
    small = Rung(
        ("E1",),
        "user_script@2",
        None,
        100,
        "user_script",
        "",
        2,
        "crashed",
        stopped_because="ended",
    )

    found = groups(small, rung(), *(in_collective(rank) for rank in (0, 1, 3)), elsewhere(2))

    assert [group.cell for group in found] == [CELL]


def test_a_failing_check_is_the_hosts_own() -> None:
    (group,) = groups(
        Rung(("E1",), "host@1", None, 10, "host", "", 1, "failed", says="the disk is full")
    )

    assert (group.mode, group.ranks, group.says) == ("check", (), "the disk is full")
