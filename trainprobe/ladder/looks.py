"""Looks at all processes of a cell at once: twice, and a third time where two do not decide."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from trainprobe.case import Case
from trainprobe.collect.locks import look_at_locks
from trainprobe.collect.members import Member
from trainprobe.collect.processes import look_at_processes
from trainprobe.collect.source import look_at_source, sites_in_stacks
from trainprobe.collect.stacks import look_at_stacks
from trainprobe.ladder.pace import Pace
from trainprobe.model.evidence import Evidence
from trainprobe.stacks.classify import classify
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.progress import moved, own_place

MEMBERS_CAP = 96

Moving = Literal["frozen", "busy", "moving", "unseen"]


# Classes of stacks.classify that are waits even where they burn CPU time: CUDA's synchronize spins, and polls look busy.
WAITS = frozenset(
    {"comm-wait", "store-wait", "gpu-wait", "lock", "file-io", "net-io", "child-wait", "dataloader", "import-lock", "sleep", "teardown", "worker-idle"}
)
FOR_PEERS = frozenset({"comm-wait", "store-wait", "gpu-wait"})
BUSY_TICKS = 5  # of 10 ms, between two looks half a second apart: a tenth of one CPU, which several ranks may share


@dataclass
class Watched:
    """What the looks showed of one process's main thread: one stack and one count of CPU ticks per look."""

    member: Member
    stacks: list[Sequence[Frame]] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    state: str = ""

    @property
    def waits(self) -> bool:
        return bool(self.stacks) and classify(self.stacks[-1], state=self.state).leaf in WAITS

    @property
    def waits_for_peers(self) -> bool:
        return bool(self.stacks) and classify(self.stacks[-1], state=self.state).leaf in FOR_PEERS

    @property
    def places(self) -> list[tuple[object, ...]]:
        """Where it stood in each look, as something that can be compared over series of looks."""
        return [own_place(frames) for frames in self.stacks if frames]

    def moving(self) -> Moving:
        """`frozen`: same place, no CPU time or a known wait. `busy`: same place, but it computes. `moving`: its own lines changed."""
        went_on = moved(self.stacks)
        if went_on:
            return "moving"
        if went_on is None and len(self.ticks) < 2:
            return "unseen"
        used = self.ticks[-1] - self.ticks[0] if len(self.ticks) > 1 else 0
        return "busy" if used > (len(self.ticks) - 1) * BUSY_TICKS and not self.waits else "frozen"


@dataclass(frozen=True)
class Looked:
    """All looks of one cell taken together. `by_rank` holds the living ranks only."""

    by_rank: dict[int, Watched]
    workers: tuple[Watched, ...] = ()
    number: int = 0

    @property
    def moving(self) -> Moving:
        """What can be said of all ranks: one that goes on is enough, since the others may be waiting for just that one."""
        seen = [each.moving() for each in (*self.by_rank.values(), *self.workers)]  # a rank may wait for its own busy worker
        order: tuple[Moving, ...] = ("moving", "busy", "frozen")
        return next((word for word in order if word in seen), "unseen")


class Looks:
    """Numbers the looks of one cell, so that a later series goes on counting."""

    def __init__(self, case: Case, cell: str, pace: Pace, cwd: str) -> None:
        self.case, self.cell, self.pace, self.cwd = case, cell, pace, cwd
        self.number = 0

    def take(self, members: Sequence[Member], hurry: Callable[[], bool]) -> Looked:
        """Look twice, and a third time later when the main threads are undecided; `hurry` says whether the user wants us to end."""
        watched = {member.pid: Watched(member) for member in members[:MEMBERS_CAP]}
        stacks: list[Evidence] = []
        stacks += self._once(watched)
        if not hurry():
            self._pause(self.pace.between_looks_s, hurry)
            stacks += self._once(watched)
            looked = self._looked(watched)
            if looked.moving in ("moving", "busy") and not hurry():
                # The third look tells a slow loop from a wait: what moves now and still stands there later polls.
                self._pause(self.pace.third_look_s, hurry)
                stacks += self._once(watched)
        look_at_locks(self.case, self.cell, [each.member for each in watched.values()])
        look_at_source(self.case, self.cell, sites_in_stacks(stacks), cwd=self.cwd)
        return self._looked(watched)

    def _once(self, watched: dict[int, Watched]) -> list[Evidence]:
        self.number += 1
        members = [each.member for each in watched.values()]
        processes = look_at_processes(self.case, self.cell, members, self.number)
        stacks = look_at_stacks(self.case, self.cell, members, self.number)
        for each, process, stack in zip(watched.values(), processes, stacks, strict=True):
            _note_process(each, process)
            _note_stack(each, stack)
        return stacks

    def _looked(self, watched: dict[int, Watched]) -> Looked:
        ranks = {each.member.rank: each for each in watched.values() if each.member.role == "rank" and each.member.rank is not None}
        workers = tuple(each for each in watched.values() if each.member.role == "loader-worker")
        return Looked(ranks, workers, self.number)

    def _pause(self, pause_s: float, hurry: Callable[[], bool]) -> None:
        ends = time.monotonic() + pause_s
        while (left_s := ends - time.monotonic()) > 0 and not hurry():
            time.sleep(min(0.05, left_s))


def _note_process(each: Watched, process: Evidence) -> None:
    threads = process.data.get("threads") or ()
    main = next((thread for thread in threads if isinstance(thread, dict) and thread.get("tid") == each.member.pid), None)
    if main is not None:
        each.state = str(main.get("state", ""))
        if isinstance(main.get("cpu_ticks"), int):
            each.ticks.append(main["cpu_ticks"])


def _note_stack(each: Watched, stack: Evidence) -> None:
    threads = [thread for thread in stack.data.get("threads") or () if isinstance(thread, dict)]
    main = next((thread for thread in threads if thread.get("os_thread_id") == each.member.pid), None)
    main = main or next((thread for thread in threads if thread.get("name") == "MainThread"), threads[0] if len(threads) == 1 else None)
    if main is not None:
        frames = [frame for frame in main.get("frames") or () if isinstance(frame, dict)]
        each.stacks.append([Frame(str(frame.get("name", "")), str(frame.get("file", "")), int(frame.get("line") or 0)) for frame in reversed(frames)])
