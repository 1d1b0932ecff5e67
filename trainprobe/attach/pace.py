"""The times by which a live job is looked at, and how many looks are under way at once."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

LOOKER_BYTES = 16 * 2**20  # py-spy without native frames: 8 MB on a small job, 13 MB on a large one
# what all that look at a node may take of its memory together, this program included
PEAK_BYTES = 150 * 2**20
OWN_BYTES = 70 * 2**20


@dataclass(frozen=True)
class Pace:
    """Deadlines and pauses of one attach, all in seconds."""

    # Everything up to the judgement, so that the command takes 15 s where nobody asks for more.
    whole_s: float = 13.5
    # From the beginning of the first look to that of the second: a line of a loop may change.
    between_looks_s: float = 0.35
    # A last look where nobody moves, but nobody is known to have waited for so long either: a
    # little more than the five seconds from which on a wait counts as a hang.
    settled_s: float = 5.3
    # Where all sleep for less, looks go on, so far apart, until the pause has ended or is longer:
    # a lock, an answer or a tool of some seconds is no hang.
    pause_s: float = 10.0
    pause_look_s: float = 3.0
    # Before a third look, where two leave it open whether somebody goes on.
    third_look_s: float = 2.0
    # So long after the first look, where a rank computes in one place and others wait for it.
    busy_s: tuple[float, ...] = (5.3, 10.3)
    # A job that moves is sampled for so long, one span after the other, as long as it is open
    # whether one rank is steadily late; `loads_s` where all stand in their loaders: some steps.
    samples_s: tuple[float, ...] = (2.0, 3.0, 5.0)
    loads_s: float = 8.0
    stacks_s: float = 5.0
    processes_s: float = 2.0
    # For looks in the background, when all else is done.
    grace_s: float = 1.0
    source_s: float = 1.0
    # Over before the pause and the second look are, on most machines.
    lint_s: float = 1.5
    # The locals of one suspect, and its C frames.
    values_s: float = 1.5
    native_s: float = 2.5
    # The locals of one that works alone, read again and again for so long, and all of these reads.
    circling_s: float = 2.5
    circling_at_most_s: float = 4.0
    # The dumps that --trigger-dump asks for; all ranks of --deep.
    pipe_s: float = 8.0
    deep_s: float = 15.0


class Clock:
    """What is left of the whole time. All looks obey it; `kept_s` of it are for bringing in the
    last ones.
    """

    def __init__(self, whole_s: float, kept_s: float = 0.0, began: float | None = None) -> None:
        self.whole_s, self.kept_s = whole_s, kept_s
        self.began = time.monotonic() if began is None else began
        self.ends = self.began + whole_s - kept_s

    def keep(self, longer_s: float) -> None:
        """End the looks earlier, by a quarter of the whole time at most."""
        self.ends -= min(longer_s, self.whole_s / 4)

    @property
    def left_s(self) -> float:
        return max(0.0, self.ends - time.monotonic())

    def at_most(self, wanted_s: float) -> float:
        """`wanted_s`, or the time left if that is less; never quite 0, so that every look runs."""
        return max(0.05, min(wanted_s, self.left_s))

    def at_last(self, wanted_s: float) -> float:
        """The same of the time with what was kept."""
        return max(0.05, min(wanted_s, self.ends + self.kept_s - time.monotonic()))


def at_once() -> int:
    """How many processes to look at side by side: a few more than CPUs, within the memory limit."""
    room = (PEAK_BYTES - OWN_BYTES) // LOOKER_BYTES
    return max(2, min(int(room), len(os.sched_getaffinity(0)) + 1))
