"""When a live job needs another look, and which processes earn one at their C frames."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from trainprobe.attach.pace import PEAK_BYTES, Clock, Pace, at_once
from trainprobe.attach.rounds import Rounds, speaks_python
from trainprobe.case import Case
from trainprobe.collect.members import Member
from trainprobe.collect.thread_history import ThreadHistory
from trainprobe.stacks.frames import Frame

C10D = "/envs/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
LOADER = "/envs/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
MAIN = Frame("<module>", "/job/train.py", 90)
WAITING = (MAIN, Frame("step", "/job/train.py", 40), Frame("all_reduce", C10D, 2800))
FOR_DATA = (MAIN, Frame("_try_get_data", LOADER, 1200), Frame("_next_data", LOADER, 1400))


@pytest.fixture
def rounds(tmp_path: Path) -> Rounds:
    return Rounds(Case.create(str(tmp_path / "case"), "attach", ()), "job", Pace(), Clock(10.0), 2)


def put(
    rounds: Rounds,
    member: Member,
    stacks: Sequence[Sequence[Frame]],
    ticks: Sequence[int] = (10, 10),
    state: str = "S",
    wchan: str = "",
) -> None:
    rounds.watched[member.pid, member.started_ticks] = ThreadHistory(
        member, list(stacks), list(ticks), state, wchan
    )


def at(line: int) -> tuple[Frame, ...]:
    return (MAIN, Frame("compute", "/job/train.py", line))


def test_ranks_that_all_wait_are_decided_by_two_looks(rounds: Rounds) -> None:
    put(rounds, Member(0, 100), [WAITING, WAITING], ticks=(10, 300))
    put(rounds, Member(1, 101), [at(7), at(7)])
    assert not rounds.undecided()


def test_a_rank_that_computes_in_one_place_is_undecided(rounds: Rounds) -> None:
    put(rounds, Member(0, 100), [WAITING, WAITING])
    put(rounds, Member(1, 101), [at(7), at(7)], ticks=(10, 50), state="R")
    assert rounds.undecided()


def test_a_rank_whose_line_changed_is_undecided(rounds: Rounds) -> None:
    put(rounds, Member(1, 101), [at(7), at(9)])
    assert rounds.undecided()


def test_a_job_that_steps_through_its_collectives_is_decided(rounds: Rounds) -> None:
    later = (MAIN, Frame("step", "/job/train.py", 44), Frame("all_reduce", C10D, 2800))
    put(rounds, Member(0, 100), [WAITING, later])
    assert not rounds.undecided(), "lines changed between two waits: that is progress"


@pytest.mark.parametrize(("rank_stands", "undecided"), [(FOR_DATA, True), (WAITING, False)])
def test_a_busy_worker_matters_to_the_rank_that_waits_for_it(
    rounds: Rounds, rank_stands: Sequence[Frame], undecided: bool
) -> None:
    put(rounds, Member(0, 100), [rank_stands, rank_stands])
    put(rounds, Member(0, 200, "loader-worker"), [at(7), at(7)], ticks=(10, 60), state="R")
    assert rounds.undecided() is undecided


def test_c_frames_are_for_the_frozen_whose_python_frames_do_not_decide(rounds: Rounds) -> None:
    put(rounds, Member(0, 100), [WAITING, WAITING])
    put(rounds, Member(1, 101), [at(7), at(7)], wchan="hrtimer_nanosleep")
    put(rounds, Member(2, 102), [at(7), at(7)], ticks=(10, 50), state="R")
    put(rounds, Member(0, 200, "loader-worker"), [at(7), at(7)])
    assert rounds.native_suspects() == []
    for rank in (3, 4, 5):
        put(rounds, Member(rank, 100 + rank), [at(7), at(7)])
    assert [member.rank for member in rounds.native_suspects()] == [3, 4], "at most two"


def test_a_member_that_went_is_evidence(rounds: Rounds) -> None:
    rounds.look([Member(0, 2**22 - 3, "rank", 5), Member(1, os.getpid(), "rank", 1)])
    looks = [record for record in rounds.case.evidence if record.kind == "process"]
    assert [record.outcome for record in looks] == ["unavailable", "unavailable"]
    assert "is gone" in looks[0].reason
    assert "belongs to another process" in looks[1].reason, (
        "our own pid with the start of another process: a reused number"
    )
    assert not rounds.undecided()


def test_our_own_python_speaks_python() -> None:
    assert speaks_python(os.getpid())
    assert speaks_python(2**22 - 3), "a process that hides its program may be one"


def test_lookers_stay_below_the_stated_memory() -> None:
    assert 2 <= at_once() <= PEAK_BYTES // 2**24


def young(
    rank: int,
    *,
    asleep_s: float = 0.4,
    stacks: Sequence[Sequence[Frame]] = (WAITING, WAITING),
    voluntary: Sequence[int] = (10, 12),
) -> ThreadHistory:
    return ThreadHistory(
        Member(rank, 100 + rank),
        list(stacks),
        [10, 10],
        "S",
        voluntary=list(voluntary),
        asleep_s=asleep_s,
    )


def test_how_long_they_have_waited_already(rounds: Rounds) -> None:
    rounds.watched = {
        (100 + rank, None): young(rank, asleep_s=age_s) for rank, age_s in enumerate((0.4, 2.5))
    }
    assert rounds.age_s() == 2.5
    rows = [
        {"pid": 100, "peer_pid": 101, "peer_rank": 1, "silent_s": 600.0},
        {"pid": 100, "peer_pid": 9, "peer_rank": None, "silent_s": 1.0},
    ]
    rounds.case.add("sockets", cell="job", data={"connections": rows})
    assert rounds.age_s() == 600.0, (
        "they may have been looked at a moment ago; their connections were not"
    )


@pytest.mark.parametrize(
    "goes_on",
    [young(1, voluntary=(10, 40)), young(1, stacks=(at(7), at(9)))],
    ids=["woken by more than the looks", "its line changed"],
)
def test_where_somebody_goes_on_there_is_no_age(rounds: Rounds, goes_on: ThreadHistory) -> None:
    rounds.watched = {(100, None): young(0), (101, None): goes_on}
    assert rounds.age_s() is None


def test_who_went_to_sleep_in_the_moment_of_the_first_look_has_not_gone_on_since(
    rounds: Rounds,
) -> None:
    last = young(0, asleep_s=0.0, voluntary=(10, 40))
    last.naps, last.looked_until = [(50.0, 0.0), (50.6, 0.58)], [50.1, 50.7]
    rounds.watched = {(100, None): last}
    assert rounds.age_s() == 0.0
    last.naps[-1] = (50.6, 0.2)
    assert rounds.age_s() is None


BATON = (MAIN, Frame("wait", "/envs/lib/python3.11/site-packages/torch/utils/file_baton.py", 50))


@pytest.mark.parametrize(
    ("silent_s", "age_s"),
    [(None, 0.0), (300.0, 0.0), (0.2, None)],
    ids=["nothing tells", "nobody talks", "they talk"],
)
def test_who_polls_earns_a_last_look_unless_the_ranks_talk(
    rounds: Rounds, silent_s: float | None, age_s: float | None
) -> None:
    rounds.watched = {
        (100 + rank, None): young(rank, asleep_s=0.04, stacks=(BATON, BATON), voluntary=(10, 40))
        for rank in (0, 1)
    }
    if silent_s is not None:
        rows = [
            {"pid": 100 + rank, "peer_pid": 101 - rank, "peer_rank": 1 - rank, "silent_s": silent_s}
            for rank in (0, 1)
        ]
        rounds.case.add("sockets", cell="job", data={"connections": rows})
    assert rounds.age_s() == age_s


def test_a_last_look_comes_after_what_counts_as_a_hang() -> None:
    from trainprobe.stacks.stillness import HUNG_S

    assert HUNG_S < Pace().settled_s < HUNG_S + 1


def test_the_only_rank_of_a_host_is_sampled_where_others_are_elsewhere(rounds: Rounds) -> None:
    put(rounds, Member(0, 100), [at(7), at(9)])
    assert not rounds.steps()
    rounds.elsewhere = True
    assert rounds.steps()


def test_a_job_that_goes_through_its_collectives_is_sampled(rounds: Rounds) -> None:
    put(rounds, Member(0, 100), [at(7), at(9)])
    put(rounds, Member(1, 101), [WAITING, WAITING])
    assert rounds.steps()
    rounds.watched[101, None].asleep_s = 40.0
    assert not rounds.steps(), "who has slept for so long waits for one long piece of work"


def test_a_rank_that_computes_in_one_place_while_all_others_wait(rounds: Rounds) -> None:
    put(rounds, Member(0, 100), [WAITING, WAITING])
    put(rounds, Member(1, 101), [at(7), at(7)], ticks=(10, 90), state="R")
    assert rounds.busy_alone()
    put(rounds, Member(2, 102), [at(7), at(9)])
    assert not rounds.busy_alone(), "its lines change: that is progress"


def test_a_rank_that_asks_for_the_interpreter_lock_all_the_time_is_looked_at_for_longer(
    rounds: Rounds,
) -> None:
    put(rounds, Member(0, 100), [WAITING, WAITING])
    put(rounds, Member(1, 101), [at(7), at(7)])
    rank = rounds.watched[101, None]
    rank.naps, rank.voluntary = [(50.0, 0.001), (51.0, 0.003)], [1000, 1180]
    assert rounds.busy_alone()
    rank.voluntary = [1000, 1020]
    assert not rounds.busy_alone(), "it polls, twenty times a second"


def test_the_frame_that_knows_which_compilation_is_under_way_is_asked(rounds: Rounds) -> None:
    dynamo = "/envs/lib/python3.11/site-packages/torch/_dynamo/convert_frame.py"
    inside = (*at(7), Frame("_compile", dynamo, 2102), Frame("trace_frame", dynamo, 954))
    put(rounds, Member(0, 100), [WAITING, WAITING])
    put(rounds, Member(1, 101), [at(7), inside])

    (asked,) = rounds.compilations()

    assert (asked.member.pid, asked.file, asked.function) == (101, dynamo, "_compile")


def test_a_worker_that_computes_while_all_ranks_wait_is_looked_at_for_longer(
    rounds: Rounds,
) -> None:
    put(rounds, Member(0, 100), [WAITING, WAITING])
    put(rounds, Member(1, 101), [FOR_DATA, FOR_DATA])
    put(rounds, Member(1, 701, "loader-worker"), [at(7), at(9)], ticks=(10, 60), state="R")
    assert rounds.worker_alone()
    put(rounds, Member(0, 100), [at(3), at(4)], ticks=(10, 60), state="R")
    assert not rounds.worker_alone(), "a rank has work of its own"


@pytest.mark.parametrize(("slept_s", "steps"), [(1.6, True), (3.9, False)])
def test_who_wakes_in_a_collective_and_sleeps_in_one_again_steps_however_slowly(
    rounds: Rounds, slept_s: float, steps: bool
) -> None:
    put(rounds, Member(0, 100), [at(7), at(7)])
    put(rounds, Member(1, 101), [WAITING, WAITING])
    waiting = rounds.watched[101, None]
    waiting.asleep_s = 2.1
    waiting.naps, waiting.looked_until = [(50.0, 2.1), (51.9, slept_s)], [50.1, 52.0]

    assert rounds.steps() is steps


def slept(rank: int, *naps: tuple[float, float], leaf: Sequence[Frame] = WAITING) -> ThreadHistory:
    """A rank that was looked at when each nap had lasted so long, seconds ago and seconds."""
    now = time.time()
    looks = [(now - ago_s, slept_s) for ago_s, slept_s in naps]
    return ThreadHistory(
        Member(rank, 100 + rank),
        [leaf] * len(naps),
        [10] * len(naps),
        "S",
        naps=looks,
        looked_until=[at + 0.05 for at, _ in looks],
    )


LONG_AGO, BEFORE = ((3.0, 9.0), (1.0, 1.9)), ((3.0, 2.0), (1.0, 1.9))


@pytest.mark.parametrize(
    ("naps", "leaf", "pausing_s"),
    [
        ((LONG_AGO, BEFORE), WAITING, 5.0),
        ((((3.0, 40.0), (1.0, 1.9)), BEFORE), WAITING, None),
        ((((3.0, 9.0), (1.0, 0.2)), BEFORE), WAITING, None),
        ((LONG_AGO, ((3.0, 0.1), (1.0, 0.1))), at(7), 12.0),
    ],
    ids=["looks broke the sleep", "one has slept for long", "one got on", "one polls"],
)
def test_all_may_only_pause(
    rounds: Rounds,
    naps: tuple[tuple[tuple[float, float], ...], ...],
    leaf: Sequence[Frame],
    pausing_s: float | None,
) -> None:
    first, second = slept(0, *naps[0]), slept(1, *naps[1], leaf=leaf)
    rounds.watched = {(100, None): first, (101, None): second}
    assert rounds.pausing_s() == (pausing_s and pytest.approx(pausing_s, abs=0.5))


def test_who_stopped_or_moves_is_no_pause(rounds: Rounds) -> None:
    still = slept(0, (3.0, 2.0), (1.0, 1.9))
    moves = slept(1, (3.0, 2.0), (1.0, 1.9))
    rounds.watched = {(100, None): still, (101, None): moves}
    moves.stacks = [at(7), at(9)]
    assert rounds.pausing_s() is None
    moves.stacks, moves.state = [at(7), at(7)], "T"
    assert rounds.pausing_s() is None


def test_ranks_that_make_a_process_group_are_asked_for_its_number(rounds: Rounds) -> None:
    making = (
        *at(7),
        Frame("new_group", C10D, 5863),
        Frame("_new_process_group_helper", C10D, 2169),
    )
    first = (*at(3), Frame("init_process_group", C10D, 1800), making[-1])
    put(rounds, Member(0, 100), [making, making])
    put(rounds, Member(1, 101), [first, first])
    assert rounds.groups_made() == []
    for number in range(2, 40):
        put(rounds, Member(number, 100 + number), [making, making])

    asked = rounds.groups_made()

    assert 2 <= len(asked) <= 8
    assert {one.member.rank for one in asked}.isdisjoint({1})
    assert {(one.texts, one.function) for one in asked} == {
        (("group_name", "group_size"), "_new_process_group_helper")
    }


def test_ranks_that_all_wait_long_are_asked_how_they_parted(rounds: Rounds) -> None:
    other = (MAIN, Frame("step", "/job/train.py", 44), Frame("broadcast", C10D, 3151))
    for number, stack in enumerate((WAITING, WAITING, other)):
        put(rounds, Member(number, 100 + number), [stack, stack])
        rounds.watched[100 + number, None].asleep_s = 20.0
    loop = {"kind": "for", "text": "for i in range(n):"}
    sites = [{"line": line, "blocks": [loop]} for line in (40, 44)]
    data = {"file": "/job/train.py", "sites": sites}
    rounds.case.add("source", cell="job", source="file", data=data)

    members, names = rounds.parted()
    assert [member.rank for member in members] == [0, 2, 1], "one of each stack first"
    assert names == {("/job/train.py", "step"): ("i", "n"), (C10D, "broadcast"): ("src",)}

    put(rounds, Member(1, 101), [at(7), at(7)])
    rounds.watched[101, None].asleep_s = 20.0
    members, names = rounds.parted()
    assert names == {(C10D, "broadcast"): ("src",)}, "who waits for nobody is the one to look at"


def test_a_wait_without_a_frame_is_a_wait_for_others_as_well(rounds: Rounds) -> None:
    for number, stack in enumerate((WAITING, (MAIN, Frame("step", "/job/train.py", 44)))):
        put(rounds, Member(number, 100 + number), [stack, stack])
        rounds.watched[100 + number, None].asleep_s = 20.0
    loop = {"kind": "for", "text": "for _ in range(count):"}
    for text, asked in (("time.sleep(9)", False), ("work.wait()", True)):
        sites = [{"line": 40, "blocks": [loop]}, {"line": 44, "text": text, "blocks": [loop]}]
        data = {"file": "/job/train.py", "sites": sites}
        rounds.case.add("source", cell="job", source="file", data=data)
        members, names = rounds.parted()
        assert (len(members) == 2, ("/job/train.py", "step") in names) == (asked, asked)


def test_ranks_that_have_just_met_are_asked_nothing(rounds: Rounds) -> None:
    for number in range(2):
        put(rounds, Member(number, 100 + number), [WAITING, WAITING])
        rounds.watched[100 + number, None].asleep_s = 0.1
    assert rounds.parted() == ([], {})
