"""What is advised at a queue fits who should fill it."""

from __future__ import annotations

from tests.causes.fixtures import everything
from trainprobe.causes import built


def steps(name: str) -> str:
    (fixture,) = (one for one in everything() if one.name == name)
    (cause,) = (one for one in built() if one.id == fixture.cause_id)
    return " / ".join(step for fix in cause.fixes_for(fixture.scene) for step in fix.steps)


def test_a_queue_between_threads_is_no_matter_of_processes() -> None:
    said = steps("queue-deadlock/fires_unserved")
    assert "open feed.py:9 in produce" in said
    assert "process.join" not in said
    assert "cancel_join_thread" not in said

    said = steps("queue-deadlock/fires_unemptied")
    assert "queue.Full" in said
    assert "process.join" not in said
    assert "cancel_join_thread" not in said


def test_a_lock_that_is_held_already_is_taken_once() -> None:
    said = steps("thread-deadlock/fires_own_lock")
    assert "cache.py:12 runs while it is held" in said
    assert "RLock" in said
    assert "same order" not in said
