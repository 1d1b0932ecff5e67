"""Who ended while a job was looked at, and how."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from trainprobe.attach.process_ends import Lives
from trainprobe.collect.members import Member
from trainprobe.collect.procfs import stat

SLEEPS = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def lives() -> Iterator[Lives]:
    held = Lives()
    yield held
    held.close()


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[bytes]]]:
    started = [subprocess.Popen(SLEEPS) for _ in range(3)]
    yield started
    for child in started:
        child.kill()
        child.wait()


def member(child: subprocess.Popen[bytes], rank: int, role: str = "rank") -> Member:
    now = stat(child.pid)
    assert now is not None
    return Member(rank, child.pid, role, now.started_ticks)


def until_ended(lives: Lives, count: int) -> None:
    ends = time.monotonic() + 10
    while len(lives.ended) < count and time.monotonic() < ends:
        time.sleep(0.005)


def test_whoever_dies_is_known_in_order_with_how_it_ended(
    lives: Lives, children: list[subprocess.Popen[bytes]]
) -> None:
    ranks = [member(child, rank) for rank, child in enumerate(children)]
    lives.hold(ranks)
    for dead, rank in enumerate((2, 0)):
        children[rank].terminate()
        until_ended(lives, dead + 1)
    children[0].wait()  # the parent takes the status of one, and the other stays a zombie
    lives.check()

    endings = lives.endings()

    assert [one.rank for one, _ in endings] == [2, 0]
    assert (endings[0][1].how, endings[0][1].signal) == ("signalled", 15)
    assert endings[1][1].signal == 15 or endings[1][1].seen_by == "nobody", (
        "a kernel before 6.15 tells a status that was taken to nobody"
    )
    assert (endings[0][1].at or 0) < (endings[1][1].at or 0)
    assert not lives.over()


def test_a_job_is_over_when_its_launcher_has_ended_too(
    lives: Lives, children: list[subprocess.Popen[bytes]]
) -> None:
    lives.hold(
        [member(children[0], 0), member(children[1], 1), Member(None, children[2].pid, "launcher")]
    )
    for child in children[:2]:
        child.kill()
    until_ended(lives, 2)
    assert lives.all_ended()
    assert not lives.over(), "a launcher that lives on may start its ranks again"
    children[2].kill()
    until_ended(lives, 3)
    assert lives.over()


def test_without_pidfds_the_end_is_seen_all_the_same(
    lives: Lives, children: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    lives.hold([member(children[0], 0)])
    children[0].kill()
    children[0].wait()
    lives.check()
    (ended,) = lives.endings()
    assert (ended[1].how, ended[1].code, ended[1].seen_by) == ("exited", None, "nobody")
    assert ended[1].reason


def test_a_reused_number_is_somebody_else(
    lives: Lives, children: list[subprocess.Popen[bytes]]
) -> None:
    lives.hold([Member(0, children[0].pid, "rank", 1), Member(1, 2**22 - 3, "rank", 5)])
    lives.check()
    assert not lives.endings()
    assert not lives.over()
