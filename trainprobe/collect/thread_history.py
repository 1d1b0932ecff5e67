"""What several looks showed of the main thread of each process, and whether it goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Literal, Optional, Sequence, Tuple

from trainprobe.case import Case
from trainprobe.collect.members import Member
from trainprobe.collect.processes import look_at_processes
from trainprobe.collect.stacks import look_at_stacks
from trainprobe.model.evidence import Evidence
from trainprobe.stacks.classify import classify
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.gpu_waits import is_of_cuda
from trainprobe.stacks.progress import moved, own_place
from trainprobe.stacks.stillness import ASKS_PER_S, SWITCHES_PER_LOOK

Moving = Literal["frozen", "busy", "moving", "unseen"]


# Classes of stacks.classify that are waits even where they burn CPU time: CUDA's synchronize spins,
# and polls look busy.
WAITS = frozenset(
    """
    comm-wait store-wait gpu-wait lock file-io net-io child-wait dataloader import-lock sleep
    teardown worker-idle
    """.split()
)
FOR_PEERS = frozenset({"comm-wait", "store-wait", "gpu-wait"})
# of 10 ms, between two looks half a second apart: a tenth of one CPU, which several ranks may share
BUSY_TICKS = 5
NAP_S = 0.1  # a nap that began so long after a look is another one: /proc rounds to 10 ms


@dataclass
class ThreadHistory:
    """The looks at a process's main thread: a stack and a count of CPU ticks each. `naps`: when
    the look began (Unix time), and for how many seconds it had slept then. `looked_until`: when
    the look at its stack, which may wake it, was over. `on_gpu`: the process computes on a GPU.
    """

    member: Member
    stacks: List[Sequence[Frame]] = field(default_factory=list)
    ticks: List[int] = field(default_factory=list)
    state: str = ""
    wchan: str = ""
    syscall: str = ""
    voluntary: List[int] = field(default_factory=list)
    asleep_s: Optional[float] = None  # at the first look, before a look at its stack woke it
    naps: List[Tuple[float, float]] = field(default_factory=list)
    looked_until: List[float] = field(default_factory=list)
    on_gpu: bool = False

    def shorten(self, looks: int) -> None:
        """Keep the last looks only."""
        for each in (self.stacks, self.ticks, self.voluntary, self.naps, self.looked_until):
            del each[:-looks]

    @property
    def leaf(self) -> str:
        """The class of its last place, by Python frames alone; "" without a stack."""
        return classify(self.stacks[-1], state=self.state).leaf if self.stacks else ""

    @property
    def op(self) -> str:
        """The operation there, such as all_reduce, by the same."""
        return classify(self.stacks[-1], state=self.state).op if self.stacks else ""

    @property
    def sleeps_in(self) -> str:
        """The same with the kernel's word, which covers C functions without a frame."""
        return (
            classify(self.stacks[-1], wchan=self.wchan, syscall=self.syscall, state=self.state).leaf
            if self.stacks
            else ""
        )

    @property
    def waits(self) -> bool:
        return self.leaf in WAITS

    @property
    def waits_for_peers(self) -> bool:
        return self.leaf in FOR_PEERS

    @property
    def places(self) -> List[Tuple[object, ...]]:
        """Where it stood in each look, as something that can be compared over series of looks."""
        return [own_place(frames) for frames in self.stacks if frames]

    @property
    def sleeps_again(self) -> bool:
        """Did it wake by itself between two looks, and sleep in the last one?"""
        if not self.naps:
            return False
        at, slept_s = self.naps[-1]
        before = [moment for moment in self.looked_until if moment <= at]
        return bool(before) and at - slept_s > before[-1] + NAP_S

    @property
    def slept_since(self) -> Optional[float]:
        """When the sleep began in which the last look found it (Unix time), though looks may have
        interrupted it; None where that is not known.
        """
        if not self.naps or self.state == "R":
            return None
        began = self.naps[-1][0] - self.naps[-1][1]
        for (at, slept_s), looked_until in reversed(list(zip(self.naps, self.looked_until))[:-1]):
            if began > looked_until + NAP_S:
                break
            began = min(began, at - slept_s)
        return began

    @property
    def asks_in_vain(self) -> bool:
        """Has it woken time after time between the looks, and stood at one place? It wants the
        interpreter lock, or polls for something that has not come.
        """
        if len(self.naps) < 2 or len(self.voluntary) < 2 or moved(self.stacks) is not False:
            return False
        span_s = self.naps[-1][0] - self.naps[0][0]
        return self.voluntary[-1] - self.voluntary[0] >= ASKS_PER_S * span_s > 0

    @property
    def goes_on(self) -> bool:
        """Did it get on, or compute, between the last two looks?"""
        if moved(self.stacks[-2:]):
            return True
        last = self.ticks[-2:]
        return len(last) > 1 and last[1] - last[0] > BUSY_TICKS and not self.waits

    @property
    def computes(self) -> bool:
        """Has it used the processor between the looks, wherever it stood?"""
        used = self.ticks[-1] - self.ticks[0] if len(self.ticks) > 1 else 0
        return used > (len(self.ticks) - 1) * BUSY_TICKS

    @property
    def may_wait_for_gpu(self) -> bool:
        """Does it run at one place all the while, without a sleep, and compute on a GPU?"""
        switches = self.voluntary[-1] - self.voluntary[0] if self.voluntary else 0
        return (
            self.on_gpu
            and self.computes
            and moved(self.stacks) is False
            and switches <= SWITCHES_PER_LOOK * (len(self.voluntary) - 1)
        )

    def moving(self) -> Moving:
        """`frozen`: same place, no CPU time or a known wait. `busy`: same place, but it
        computes. `moving`: its own lines changed.
        """
        went_on = moved(self.stacks)
        if went_on:
            return "moving"
        if went_on is None and len(self.ticks) < 2:
            return "unseen"
        computes = self.computes and (not self.waits or self.may_wait_for_gpu)
        return "busy" if computes else "frozen"


@dataclass(frozen=True)
class CellLooks:
    """All looks of one cell taken together. `by_rank` holds the living ranks only."""

    by_rank: Dict[int, ThreadHistory]
    workers: Tuple[ThreadHistory, ...] = ()
    number: int = 0

    @property
    def moving(self) -> Moving:
        """What can be said of all ranks: one that goes on is enough, since the others may be
        waiting for just that one.
        """
        places = [
            each.moving() for each in (*self.by_rank.values(), *self.workers)
        ]  # a rank may wait for its own busy worker
        order: Tuple[Moving, ...] = ("moving", "busy", "frozen")
        return next((word for word in order if word in places), "unseen")


def looked_at(watched: Sequence[ThreadHistory], number: int) -> CellLooks:
    """Put together what the looks up to `number` showed."""
    ranks = {
        each.member.rank: each
        for each in watched
        if each.member.role == "rank" and each.member.rank is not None
    }
    return CellLooks(
        ranks, tuple(each for each in watched if each.member.role == "loader-worker"), number
    )


def look_once(
    case: Case, cell: str, watched: Sequence[ThreadHistory], number: int
) -> List[Evidence]:
    """Make look `number` at /proc and stacks, note the results, and return the stacks."""
    members = [each.member for each in watched]
    processes = look_at_processes(case, cell, members, number)
    stacks = look_at_stacks(case, cell, members, number)
    for each, process, stack in zip(watched, processes, stacks):
        note_process(each, process)
        note_stack(each, stack)
    return stacks


def note_process(each: ThreadHistory, process: Evidence) -> None:
    """Add the main thread's CPU time, and note its state and where it sleeps."""
    threads = process.data.get("threads") or ()
    each.on_gpu = each.on_gpu or any(
        is_of_cuda(str(thread.get("name") or "")) for thread in threads if isinstance(thread, dict)
    )
    main = next(
        (
            thread
            for thread in threads
            if isinstance(thread, dict) and thread.get("tid") == each.member.pid
        ),
        None,
    )
    if main is not None:
        each.state, each.wchan, each.syscall = (
            str(main.get(name) or "") for name in ("state", "wchan", "syscall")
        )
        if isinstance(main.get("voluntary"), int):
            each.voluntary.append(main["voluntary"])
        if each.asleep_s is None and isinstance(main.get("asleep_s"), (int, float)):
            each.asleep_s = float(main["asleep_s"])
        if isinstance(main.get("asleep_s"), (int, float)) and process.began:
            each.naps.append((process.began, float(main["asleep_s"])))
        if isinstance(main.get("cpu_ticks"), int):
            each.ticks.append(main["cpu_ticks"])


def note_stack(each: ThreadHistory, stack: Evidence) -> None:
    """Add the main thread's stack, outermost frame first."""
    each.looked_until.append(stack.began + stack.took_s)
    threads = [thread for thread in stack.data.get("threads") or () if isinstance(thread, dict)]
    main = next(
        (thread for thread in threads if thread.get("os_thread_id") == each.member.pid), None
    )
    main = main or next(
        (thread for thread in threads if thread.get("name") == "MainThread"),
        threads[0] if len(threads) == 1 else None,
    )
    if main is not None:
        frames = [frame for frame in main.get("frames") or () if isinstance(frame, dict)]
        each.stacks.append(
            [
                Frame(
                    str(frame.get("name", "")),
                    str(frame.get("file", "")),
                    int(frame.get("line") or 0),
                )
                for frame in reversed(frames)
            ]
        )
