"""The watch itself, on a command that is no training."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainprobe.collect.members import Member
from trainprobe.model.evidence import Ended
from trainprobe.model.request import RunRequest
from trainprobe.supervise.heartbeats import Heartbeats
from trainprobe.supervise.journal import RunFolder
from trainprobe.supervise.looks import Look
from trainprobe.supervise.supervision import ASKED_TIMES, Listeners, Supervision
from trainprobe.system.foreground import Foreground
from trainprobe.system.signal_relay import SignalRelay

Told = list[tuple[str, str]]


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[tuple[Supervision, Told]]:
    """A supervision over a sleeping command, and what it tells."""
    told: Told = []
    relay, beats = SignalRelay(), Heartbeats()
    command = Foreground(
        [sys.executable, "-c", "import time; time.sleep(60)"], os.environ, mark="M"
    )
    tell = Listeners(
        lambda says: told.append(("says", says)),
        lambda says: told.append(("death", says)),
        lambda event, look, _: told.append((event, look.says)),
        lambda _: told.append(("goes-on", "")),
    )
    folder = RunFolder.make(str(tmp_path / "case"), (), {})
    supervision = Supervision(RunRequest(), command, relay, folder, tell, beats)
    yield supervision, told
    command.send(9)
    while command.ended is None:
        command.wait(1.0)
    supervision._ended()
    relay.close()
    beats.close()


class Done:
    """A look that is over, or under way where there is none yet."""

    def __init__(self, look: Look | None = None) -> None:
        self.done, self.given_up = look, False

    def join(self, _seconds: float) -> None:
        """There is no thread."""


def test_a_look_that_is_done_before_it_has_said_so_is_taken(
    watch: tuple[Supervision, Told],
) -> None:
    supervision, told = watch
    now = time.monotonic()
    supervision._rhythm.note(now - 10.5, {5: True}, 0)
    supervision._rhythm.note(now - 10, {5: False}, 0)
    assert supervision._suspicions.due(supervision._rhythm.suspicion(now), now)
    look = Look("hung", conclusive=True, says="Rank 1 holds up the others.")
    supervision._looking = Done(look)  # type: ignore[assignment]
    supervision._take_look()
    assert told == [("hung", look.says)]
    os.write(supervision._wake, b".")  # what the thread says late must not keep us awake
    supervision._take_look()
    with pytest.raises(BlockingIOError):
        os.read(supervision._woken, 1)


def test_a_wait_that_may_end_is_told_once_it_has_lasted(watch: tuple[Supervision, Told]) -> None:
    supervision, told = watch
    now = time.monotonic()
    supervision._rhythm.note(now - 7, {5: True}, 0)
    supervision._rhythm.note(now - 6.5, {5: False}, 0)
    supervision._rhythm.note(now, {5: False}, 0)
    assert supervision._suspicions.due(supervision._rhythm.suspicion(now), now)
    world = {"ranks": [{"rank": 0, "pid": 5, "state": "waiting", "waits_for": ""}]}
    look = Look("hung", conclusive=True, says="Rank 0 waits for a lock.", report={"world": world})
    supervision._looking = Done(look)  # type: ignore[assignment]
    supervision._take_look()
    supervision._see_whether_it_is_due(now + 0.5)
    assert told == []
    supervision._see_whether_it_is_due(now + 3)
    assert told == [("hung", look.says)]
    assert supervision.seen.alarms == 1


def test_a_hang_that_was_over_before_the_look_was_is_not_told(
    watch: tuple[Supervision, Told],
) -> None:
    supervision, told = watch
    now = time.monotonic()
    supervision._rhythm.note(now - 20.5, {5: True}, 0)
    supervision._rhythm.note(now - 20, {5: False}, 0)
    assert supervision._suspicions.due(supervision._rhythm.suspicion(now - 10), now - 10)
    supervision._rhythm.note(now - 5, {5: True}, 0)
    supervision._rhythm.note(now - 4.5, {5: False}, 0)
    supervision._looking = Done(Look("hung", conclusive=True))  # type: ignore[assignment]
    supervision._take_look()
    assert told == []


def test_a_stall_ends_a_look_at_the_pace(watch: tuple[Supervision, Told]) -> None:
    supervision, _ = watch
    now = time.monotonic()
    supervision._rhythm.note(now - 5, {5: True}, 0)
    supervision._rhythm.note(now - 4.5, {5: False}, 0)
    supervision._looking = Done()  # type: ignore[assignment]
    for asked_pace in (False, True):
        supervision._asked_pace = asked_pace
        supervision._see_whether_it_is_due(now)
        assert supervision._looking.given_up is asked_pace  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("ranks", "may_end"),
    [
        ([("waiting", "rank 1"), ("unseen", "")], True),
        ([("waiting", "rank 1"), ("waiting", "")], True),
        ([("waiting", "rank 1"), ("waiting", "rank 0")], False),
        ([("waiting", "rank 1"), ("stopped", "")], True),
        ([("waiting", "rank 1"), ("exited", "")], False),
        ([], True),
    ],
)
def test_ranks_that_wait_for_each_other_wait_for_ever(
    ranks: list[tuple[str, str]], may_end: bool
) -> None:
    rows = [{"state": state, "waits_for": awaited} for state, awaited in ranks]
    look = Look("hung", report={"world": {"ranks": rows}})
    assert (look.open_s is not None) is may_end
    since = [{**row, "since_s": 3.0} for row in rows]
    latest = Look("hung", report={"world": {"ranks": since}}).open_s
    assert latest == ((3.0 if rows else math.inf) if may_end else None)
    assert not look.own_waits, "nothing to watch without a pid"


def test_slow_ranks_are_told_once_and_not_where_that_is_ignored(
    watch: tuple[Supervision, Told],
) -> None:
    supervision, told = watch
    for ranks in ([1], [1], [2]):
        report = {"suspects": [{"ranks": ranks}]}
        supervision._asked_pace = True
        supervision._looking = Done(Look("slow", says=str(ranks), report=report))  # type: ignore[assignment]
        supervision._take_look()
    assert told == [("slow", "[1]"), ("slow", "[2]")]


def test_the_end_of_a_rank_is_asked_for_some_times_only(
    watch: tuple[Supervision, Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a kernel that keeps no exit status each question is a pass over the process table."""
    supervision, told = watch
    member = Member(1, 4711, "rank", 1)
    asked: list[int] = []

    def endings() -> list[tuple[Member, Ended]]:
        asked.append(1)
        return [(member, Ended("exited", seen_by="nobody", reason="unknown"))]

    monkeypatch.setattr(supervision._lives, "endings", endings)
    monkeypatch.setattr(type(supervision._lives), "ended", frozenset({member}))
    for _ in range(5 * ASKED_TIMES):
        supervision._tell_deaths()
    assert len(asked) == ASKED_TIMES
    assert told == []


def test_only_a_look_at_a_pause_hides_what_little_a_rank_does(
    watch: tuple[Supervision, Told],
) -> None:
    """A job of little work must not seem to stand still because its pace is looked at."""
    supervision, _ = watch
    asked: list[bool] = []

    class Rank:
        pid, busy_s = 5, 0.0

        def sample(self, _at: float, *, looked_at: bool) -> None:
            asked.append(looked_at)

        def close(self) -> None:
            """Nothing is open."""

    for looking, asked_pace in ((None, False), (Done(), True), (Done(), False)):
        supervision._looking, supervision._asked_pace = looking, asked_pace  # type: ignore[assignment]
        supervision._ranks[5, 1] = Rank()  # type: ignore[assignment]
        supervision._sample(time.monotonic())
    assert asked == [False, False, True]
