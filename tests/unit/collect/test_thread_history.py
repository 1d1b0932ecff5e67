"""What is kept of many looks at one process."""

from __future__ import annotations

from trainprobe.collect.members import Member
from trainprobe.collect.thread_history import ThreadHistory
from trainprobe.stacks.frames import Frame


def test_of_many_looks_the_last_are_kept_and_tell_the_same() -> None:
    history = ThreadHistory(Member(0, 7))
    for number in range(50):
        history.stacks.append([Frame("step", "train.py", 3)])
        history.ticks.append(number * 100)
        history.voluntary.append(number)
        history.naps.append((1000.0 + number, 1000.0 + number))
        history.looked_until.append(1000.5 + number)
    before = history.moving(), history.slept_since, history.sleeps_again, history.goes_on
    history.shorten(16)
    assert (history.moving(), history.slept_since, history.sleeps_again, history.goes_on) == before
    lists = (history.stacks, history.ticks, history.voluntary, history.naps, history.looked_until)
    assert [len(one) for one in lists] == [16] * 5
    assert history.ticks[-1] == 4900
