"""Looks at all processes of a cell at once: twice, and a third time where two do not decide."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from trainprobe.case import Case
from trainprobe.collect.locks import look_at_locks
from trainprobe.collect.members import Member
from trainprobe.collect.source import look_at_source, sites_in_stacks
from trainprobe.collect.watched import Looked, Watched, look_once, looked_at
from trainprobe.ladder.pace import Pace
from trainprobe.model.evidence import Evidence

MEMBERS_CAP = 96


class Looks:
    """Numbers the looks of one cell, so that a later series goes on counting."""

    def __init__(self, case: Case, cell: str, pace: Pace, cwd: str) -> None:
        self.case, self.cell, self.pace, self.cwd = case, cell, pace, cwd
        self.number = 0

    def take(self, members: Sequence[Member], hurry: Callable[[], bool]) -> Looked:
        """Look twice, and a third time later when the main threads are undecided; `hurry` says whether the user wants us to end."""
        watched = [Watched(member) for member in {member.pid: member for member in members[:MEMBERS_CAP]}.values()]
        stacks = self._once(watched)
        if not hurry():
            self._pause(self.pace.between_looks_s, hurry)
            stacks += self._once(watched)
            looked = looked_at(watched, self.number)
            if looked.moving in ("moving", "busy") and not hurry():
                # The third look tells a slow loop from a wait: what moves now and still stands there later polls.
                self._pause(self.pace.third_look_s, hurry)
                stacks += self._once(watched)
        look_at_locks(self.case, self.cell, [each.member for each in watched])
        look_at_source(self.case, self.cell, sites_in_stacks(stacks), cwd=self.cwd)
        return looked_at(watched, self.number)

    def _once(self, watched: Sequence[Watched]) -> list[Evidence]:
        self.number += 1
        return look_once(self.case, self.cell, watched, self.number)

    def _pause(self, pause_s: float, hurry: Callable[[], bool]) -> None:
        ends = time.monotonic() + pause_s
        while (left_s := ends - time.monotonic()) > 0 and not hurry():
            time.sleep(min(0.05, left_s))
