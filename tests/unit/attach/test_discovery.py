"""Which job is looked at, and who belongs to it by the next look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from trainprobe.attach import discovery
from trainprobe.attach.discovery import earlier_of, find_target, members_now, members_of, numbered
from trainprobe.collect.members import Member
from trainprobe.collect.rank_locals import RankLocals
from trainprobe.errors import UsageError
from trainprobe.targets.live_job import Companion, Former, LaunchedBy, LiveJob, LiveRank
from trainprobe.targets.numbers import Number

TORCHRUN = LaunchedBy("torchrun", 10, 100, "torchrun train.py")


def job(
    pid: int = 10, *, ranks: Sequence[LiveRank] = (), others: Sequence[Companion] = ()
) -> LiveJob:
    mine = tuple(ranks) or tuple(
        LiveRank(pid + 1 + rank, 200, rank, "environment", rank) for rank in range(2)
    )
    return LiveJob(
        replace(TORCHRUN, pid=pid),
        mine,
        tuple(others),
        2,
        "environment",
        "node7",
        "/job/train.py",
        age_s=600.0,
    )


def found(monkeypatch: pytest.MonkeyPatch, *jobs: LiveJob) -> None:
    monkeypatch.setattr(discovery, "find_jobs", lambda **_: jobs)


def test_none_is_a_sentence_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch)
    with pytest.raises(UsageError, match="No training job of yours runs on this host") as refused:
        find_target(None)
    assert "trainprobe attach PID" in refused.value.do


def test_the_only_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, job())
    assert find_target(None).pid == 10


def test_several_are_listed_or_chosen_from(monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, job(10), job(50))
    with pytest.raises(UsageError) as refused:
        find_target(None)
    assert "  10  torchrun, ranks 0-1, /job/train.py, 10 min old" in str(refused.value)
    assert "  50  torchrun" in str(refused.value)
    offered: list[str] = []

    def second(lines: Sequence[str]) -> int:
        offered.extend(lines)
        return 1

    assert find_target(None, second).pid == 50
    assert len(offered) == 2


def test_sure_numbers_are_left_alone_and_guesses_are_asked_of_the_frames(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def say(members: Sequence[Member], **_: object) -> dict[int, RankLocals]:
        asked.extend(member.pid for member in members)
        return {11: RankLocals(spawned=1), 12: RankLocals(spawned=0, world_size=2)}

    monkeypatch.setattr(discovery, "read_rank_locals", say)
    assert numbered(job()) == job()
    assert asked == []
    guessed = job(
        ranks=[LiveRank(11, 200, 0, "start-order", 0), LiveRank(12, 200, 1, "start-order", 1)]
    )
    told = numbered(guessed)
    assert asked == [11, 12]
    assert {one.pid: (one.rank, one.rank_source) for one in told.ranks} == {
        11: (1, "frame-locals"),
        12: (0, "frame-locals"),
    }


def test_a_number_that_a_rank_gave_itself_needs_no_look_at_its_frames(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        discovery, "read_rank_locals", lambda *_, **__: pytest.fail("a rank was paused")
    )
    monkeypatch.setattr(
        discovery,
        "own_number",
        lambda pid: Number(12 - pid, 12 - pid, 2, "environment", "environment"),
    )
    told = numbered(job(ranks=[LiveRank(11, 200), LiveRank(12, 200, 0, "start-order")]))

    assert {one.pid: (one.rank, one.rank_source) for one in told.ranks} == {
        11: (1, "environment"),
        12: (0, "environment"),
    }


def test_a_number_that_all_have_given_themselves_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    zero = Number(0, 0, 2, "environment", "environment")
    monkeypatch.setattr(discovery, "own_number", lambda _: zero)
    frames = {11: RankLocals(rank=1, world_size=2), 12: RankLocals(rank=0, world_size=2)}
    monkeypatch.setattr(discovery, "read_rank_locals", lambda *_, **__: frames)

    told = numbered(job(ranks=[LiveRank(11, 200), LiveRank(12, 200, 0, "start-order")]))

    assert {one.pid: (one.rank, one.rank_source) for one in told.ranks} == {
        11: (1, "frame-locals"),
        12: (0, "frame-locals"),
    }


def test_the_only_child_left_that_numbered_itself_is_a_rank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its sibling has ended and was waited for: the script looks like one process with a worker."""
    numbers = {12: Number(1, 1, 2, "environment", "environment")}
    monkeypatch.setattr(discovery, "own_number", numbers.get)
    monkeypatch.setattr(discovery, "read_rank_locals", lambda *_, **__: {})
    alone = replace(
        job(
            ranks=[LiveRank(11, 200, 0, "only-process", 0)],
            others=[
                Companion(12, 201, "loader-worker", 0, "python", 11, sure=False),
                Companion(13, 202, "loader-worker", 0, "python", 12),
            ],
        ),
        launcher=LaunchedBy("single", 11, 200, ""),
    )
    told = numbered(alone)
    assert [(one.pid, one.rank) for one in told.ranks] == [(12, 1)]
    assert (told.launcher.kind, told.world_size) == ("spawn", 2)


def test_a_single_process_without_children_is_not_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        discovery, "read_rank_locals", lambda *_, **__: pytest.fail("it was looked at")
    )
    alone = replace(
        job(ranks=[LiveRank(11, 200, 0, "only-process", 0)]),
        launcher=LaunchedBy("single", 11, 200, ""),
    )
    assert numbered(alone) == alone


def test_who_joins_is_looked_at_and_who_goes_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    before = members_of(job())
    worker = Companion(30, 300, "loader-worker", 1, "python train.py", 12, 12)
    monkeypatch.setattr(
        discovery,
        "job_of",
        lambda _: job(ranks=[LiveRank(12, 200, 1, "environment", 1)], others=[worker]),
    )
    assert [member.pid for member in members_now(job(), before)] == [11, 12, 30]


def test_a_reused_pid_brings_no_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    before = members_of(job())
    monkeypatch.setattr(
        discovery, "job_of", lambda _: job(ranks=[LiveRank(11, 999, 0, "environment", 0)])
    )
    assert members_now(job(), before) == before

    def gone(_: int) -> LiveJob:
        raise UsageError("There is no process 10 on this host.")

    monkeypatch.setattr(discovery, "job_of", gone)
    assert members_now(job(), before) == before


def test_what_is_left_of_earlier_attempts_is_kept_apart() -> None:
    old = replace(
        job(),
        earlier_attempts=(
            Former(70, 50, "python train.py", 0),
            Former(71, 50, "python train.py", 0),
            Former(80, 60, "python train.py", 1),
        ),
    )
    assert {
        attempt: [member.pid for member in members] for attempt, members in earlier_of(old).items()
    } == {0: [70, 71], 1: [80]}
