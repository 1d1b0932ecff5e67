"""What one process of a live job does: does it work, wait, or go round without getting anywhere?
Judged over all looks, by rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trainprobe.facts import (
    Connection,
    Facts,
    Gpu,
    LoopValue,
    MainThread,
    ProcessState,
    RankEnding,
    Samples,
    SourceSite,
    Thread,
)
from trainprobe.facts.samples import meetings
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import user_frame
from trainprobe.stacks.progress import own_place
from trainprobe.stacks.servers import serves as serves_others
from trainprobe.stacks.stillness import ASKS_PER_S, FRESH_S, HUNG_S, Stillness
from trainprobe.stacks.wait_channels import sleeps_in
from trainprobe.waits.circling import Circle, circle_of, in_vain, moves_on, starts_anew
from trainprobe.waits.far_ends import far_ends
from trainprobe.waits.loops import (
    Sites,
    around,
    bounded_work,
    called_for_each,
    counts_up,
    in_for_loop,
    in_library,
    loops_of,
    own_frames,
    polls,
    waits_for_a_condition,
)
from trainprobe.waits.process_use import (
    AWAITS,
    BUSY_SHARE,
    another_writes,
    busy,
    by_proc,
    gets_on,
    never_sleeps,
    sleep_of,
    uses_its_share,
)
from trainprobe.waits.standings import AT_A_GPU, AT_THE_STORE, IN_COLLECTIVE

Kind = Literal[
    "works", "fresh", "unclear", "still", "polls", "spins", "stopped", "blocked", "ended", "unseen"
]
COUNTING_SHARE = 0.05
"""Of one CPU: who only asks whether something has come takes far less."""
LONG_CALL_S = 10.0
IDLE_SHARE = 0.01
"""Of one CPU: what CUDA's and NCCL's own threads take at most while the others have nothing to do.
"""
LONG_WAIT_S = 60.0
ROUNDS = 2  # of collectives, seen in one span of samples: who came to two went through one
"""Nobody waits for so long for one result of a thread, unless it is known to be that thread's."""
ON_CHILDREN = ("dataloader", "child-wait", "compile")
# Of these, waits that end only when somebody else does something, however often the thread wakes to
# ask.
HELD = frozenset({"lock", "import-lock", "child-wait", "dataloader", "teardown"})


# A line that says itself that it sleeps or keeps a pace; `poll_interval` and the like are its
# author's words for it too.
_SLEEPS = re.compile(
    r"sleep|wait|delay|pause|back_?off|throttl|limit|tick|interval|pace", re.IGNORECASE
)

_ASKS_FOR_A_CHILD = re.compile(r"\.(?:poll\(\)|is_alive\(|exitcode\b|returncode\b)|\bwaitpid\(")


@dataclass(frozen=True)
class Activity:
    """`age_s` is how long its main thread has got no further at least, None where that is not
    known. `says` has no subject: `computes at train.py:3`. `unclear` is a main thread that gets no
    further while others of its process work, or one call of C goes on: nothing tells whether that
    is its progress.

    `wakes`: it runs now and then while it waits, so that it may have waited for longer, but for no
    longer than `at_most_s` where that is known.
    """

    kind: Kind
    says: str = ""
    age_s: float | None = None
    evidence: tuple[str, ...] = ()
    condition: bool = False
    wakes: bool = False
    at_most_s: float | None = None

    @property
    def goes_on(self) -> bool:
        return self.kind in ("works", "fresh")


def watch_of(facts: Facts, cell: str) -> Watch:
    """The watch over a cell, made once for these facts."""
    key = (watch_of, cell)
    if key not in facts.derived:
        facts.derived[key] = Watch(facts, cell)
    found: Watch = facts.derived[key]
    return found


class Watch:
    """All processes of one cell, with what each does. It is asked by pid."""

    def __init__(self, facts: Facts, cell: str) -> None:
        self._facts, self._cell = facts, cell
        self.processes = {fact.pid: fact for fact in facts.of(ProcessState, cell=cell)}
        # The direct children of each process, with their places among all.
        self._below: dict[int, list[tuple[int, ProcessState]]] = {}
        for place, process in enumerate(self.processes.values()):
            if process.ppid is not None:
                self._below.setdefault(process.ppid, []).append((place, process))
        self.mains = {
            fact.pid: fact for fact in facts.of(MainThread, cell=cell) if fact.source == "py-spy"
        }
        self.endings = {
            fact.pid: fact for fact in facts.of(RankEnding, cell=cell) if fact.pid is not None
        }
        self.sites: Sites = {
            (fact.file, fact.line): fact for fact in facts.of(SourceSite, cell=cell)
        }
        self.threads: dict[int, list[Thread]] = {}
        for thread in sorted(facts.of(Thread, cell=cell), key=lambda fact: fact.look):
            if not thread.native:
                self.threads.setdefault(thread.pid, []).append(thread)
        ranks = {fact.pid for fact in facts.of(ProcessState, cell=cell)}
        # For how long nothing has come over any connection to somebody outside of the job.
        self.silent_s: dict[int, float] = {}
        for fact in facts.of(Connection, cell=cell):
            outside = fact.peer_rank is None and fact.peer_pid not in ranks
            if fact.state == "ESTAB" and fact.silent_s is not None and outside:
                known = self.silent_s.get(fact.pid, fact.silent_s)
                self.silent_s[fact.pid] = min(known, fact.silent_s)
        self.receives = {pid for pid, silent_s in self.silent_s.items() if silent_s < FRESH_S}
        self.met: dict[int, int] = {}
        for one in facts.of(Samples, cell=cell):
            self.met[one.pid] = max(self.met.get(one.pid, 0), meetings(one))
        self.values: dict[int, list[LoopValue]] = {}
        for value in facts.of(LoopValue, cell=cell):
            self.values.setdefault(value.pid, []).append(value)
        self.gpus: dict[int, list[Gpu]] = {}
        for gpu in facts.of(Gpu):
            for pid in gpu.pids:
                self.gpus.setdefault(pid, []).append(gpu)
        self._known: dict[int, Activity] = {}

    def children(self, pid: int) -> tuple[ProcessState, ...]:
        """Direct children first, then those further down; ended ones are among them."""
        found: list[ProcessState] = []
        parents = {pid}
        while parents:
            below = {place: one for parent in parents for place, one in self._below.get(parent, ())}
            level = [
                process
                for _, process in sorted(below.items(), key=lambda item: item[0])
                if process.pid != pid and process not in found
            ]
            found += level
            parents = {process.pid for process in level}
        return tuple(found)

    def awaited_children(self, pid: int) -> tuple[ProcessState, ...]:
        """The children, and those further down, for which its main thread may wait: a loader for
        its workers, waitpid(PID) for that one, a read for whom it listens to. Others are busy
        whatever it does.
        """
        main, process, found = self.mains.get(pid), self.processes.get(pid), self.children(pid)
        if main is not None and main.leaf == "dataloader":
            return tuple(child for child in found if child.role == "loader-worker")
        awaited = process.blocked.child if process is not None else None
        below = {awaited, *(child.pid for child in self.children(awaited))} if awaited else None
        below = below or self.listens_to(pid) or None
        return tuple(child for child in found if below is None or child.pid in below)

    def listens_to(self, pid: int) -> set[int]:
        """Who is at the other end of the pipe or socket in which its main thread sleeps."""
        process = self.processes.get(pid)
        ends = far_ends(self._facts, self._cell, process) if process is not None else ()
        return {other for end in ends for other in end.pids}

    def activity(self, pid: int) -> Activity:
        """What the process does. A child that a waiting process waits for counts for it."""
        if pid not in self._known:
            self._known[pid] = Activity("unseen")  # a family that runs in a circle ends here
            self._known[pid] = self._judged(pid)
        return self._known[pid]

    def leaf(self, pid: int) -> str:
        """The class of the place where it stands: by its Python stack, or by the kernel of a
        program that has none.
        """
        main, process = self.mains.get(pid), self.processes.get(pid)
        if main is not None:
            return main.leaf
        return sleep_of(process)[0] if process is not None else ""

    def asks_for_children(self, pid: int) -> bool:
        """Is the loop in which it stands one like `while child.poll() is None`?"""
        looks = [look.frames for look in self.looks(pid)]
        texts = [loop.text for loop in loops_of(looks, self.sites)[:1]] if looks else []
        return any(_ASKS_FOR_A_CHILD.search(text) for text in texts)

    def toiling_worker(self, pid: int) -> tuple[ProcessState, bool] | None:
        """A loader worker for which this process waits, that computes inside one function of the
        user's in all looks and hands nothing on, with whether that is a `while` loop of plain
        Python. None where one of them brings data, or gets on as far as /proc shows.
        """
        main, process = self.mains.get(pid), self.processes.get(pid)
        if main is None or main.leaf != "dataloader" or main.moved is not False:
            return None
        if process is None or process.wrote_bytes:  # it asks for the next batch when one has come
            return None
        found: tuple[ProcessState, bool] | None = None
        for worker in self.awaited_children(pid):
            if self.circle(worker.pid) is not None:
                found = (worker, True)
                continue
            if not self.activity(worker.pid).goes_on or self.leaf(worker.pid) == "worker-idle":
                continue
            looks = [look.frames for look in self.looks(worker.pid)]
            if (
                len(looks) < 2
                or not around(looks)
                or not busy(worker)
                or worker.wrote_bytes
                or gets_on(worker)
            ):
                return None
            loops = loops_of(looks, self.sites)
            plain = not any(in_library(frames) for frames in looks)
            found = found or (worker, plain and bool(loops) and loops[0].kind == "while")
        return found

    def circle(self, pid: int) -> Circle | None:
        """The value by which its main thread is known to go round in a loop for ever."""
        looks = [look.frames for look in self.looks(pid)]
        process = self.processes.get(pid)
        sample = process is not None and process.role == "loader-worker"
        return circle_of(self.values.get(pid, ()), looks, self.sites, makes_a_sample=sample)

    def moves_on(self, pid: int) -> LoopValue | None:
        """A value of its main thread that was seen to move on, read again and again."""
        return moves_on(self.values.get(pid, ()))

    def in_vain(self, pid: int) -> LoopValue | None:
        """A value that changed time after time while none moved on: nothing tells whether it gets
        anywhere.
        """
        return in_vain(self.values.get(pid, ()))

    def starts_anew(self, pid: int) -> LoopValue | None:
        """The same in a loop that starts anew each time, and so gets nowhere."""
        looks = [look.frames for look in self.looks(pid)]
        return starts_anew(self.values.get(pid, ()), looks, self.sites)

    def gil_keeper(self, pid: int) -> Thread | None:
        """The thread that stands in one call in all looks and keeps the interpreter lock, while
        the main thread wakes time after time to ask for it and does not get on. One that runs
        Python hands the lock over within 5 ms: such a call has lasted for all of the looks.
        """
        process, main = self.processes.get(pid), self.mains.get(pid)
        if process is None or main is None or main.moved is not False or uses_its_share(process):
            return None
        if not process.switches or process.switches < ASKS_PER_S * (process.looked_s or HUNG_S):
            return None
        looks = len(self.looks(pid))
        kept = [one for one in self.threads.get(pid, ()) if one.owns_gil]
        places = {(one.os_thread_id, one.main, one.frames) for one in kept}
        alone = len(places) == 1 and looks > 1 and len(kept) >= looks - (looks > 2)
        return kept[-1] if alone and not kept[-1].main else None

    def looks(self, pid: int) -> list[Thread]:
        return [thread for thread in self.threads.get(pid, ()) if thread.main and thread.frames]

    def _judged(self, pid: int) -> Activity:
        process, main, ending = self.processes.get(pid), self.mains.get(pid), self.endings.get(pid)
        if ending is not None:  # what was seen of it before is not what is
            zombie = process is not None and process.state in ("Z", "X")
            return Activity(
                "ended",
                "has ended",
                process.asleep_s if process is not None and zombie else 0.0,
                ending.evidence,
            )
        if process is None and main is None:
            return Activity("unseen")
        ids = tuple(
            dict.fromkeys(
                id_ for fact in (process, main) if fact is not None for id_ in fact.evidence
            )
        )
        age = process.asleep_s if process is not None else None
        kind, says, condition = self._what(pid, process, main)
        if (
            kind == "still"
            and main is not None
            and main.leaf in (AT_THE_STORE, AT_A_GPU)
            and process is not None
            and process.looked_s is not None
        ):
            # who keeps the store asks every 10 ms who has come, and who waits for a GPU asks all
            # the time: it stands, and never sleeps for long
            age = max(age or 0.0, process.looked_s)
        stillness = (
            process.stillness
            if process is not None and process.stillness is not None
            else Stillness(age or 0.0)
        )
        wakes = stillness.wakes and kind in ("still", "polls", "spins")
        if wakes and age is not None:
            age = max(age, stillness.at_least_s)
        return Activity(
            kind, says, age, ids, condition, wakes, stillness.at_most_s if wakes else None
        )

    def _what(
        self, pid: int, process: ProcessState | None, main: MainThread | None
    ) -> tuple[Kind, str, bool]:
        where = f" at {main.where}" if main is not None and main.where else ""
        workers = [
            child
            for child in self.children(pid)
            if child.role == "loader-worker" and child.state not in ("Z", "X")
        ]
        answer = any(worker.wrote_bytes != 0 for worker in workers) if workers else None
        plain = (
            by_proc(process, main, where, workers_answer=answer) if process is not None else None
        )
        if plain is not None:
            return (*plain, False)
        if main is None:
            return (*self._without_stack(pid, process), False)
        circle = self.circle(pid)
        if circle is not None and not (process is not None and process.wrote_bytes):
            return "spins", f"goes round in a loop{where}: {circle.says}", True
        kept = self._kept_waiting(pid, process, where)
        kind, says, condition = (
            kept
            or self._at_a_gpu(pid, process, main, where)
            or self._by_stack(pid, process, main, where)
        )
        if kind in ("unclear", "still", "polls") and self.met.get(pid, 0) >= ROUNDS:
            return "works", f"goes through its collectives, and is{where} now", False
        idle = kind in ("still", "polls", "spins") and kept is None
        if idle and not answer and another_writes(process, main):
            says = f"{says} while other threads of its process write, perhaps what it waits for"
            return "unclear", says, False
        return kind, says, condition

    def _kept_waiting(
        self, pid: int, process: ProcessState | None, where: str
    ) -> tuple[Kind, str, bool] | None:
        """Does another thread of its own keep the interpreter lock from the main one?"""
        keeper = self.gil_keeper(pid)
        if keeper is None or process is None:
            return None
        frame = user_frame(keeper.frames)
        at = f" at {frame.where}" if frame is not None else ""
        says = f"asks{where} for the interpreter lock, which its thread {keeper.name} keeps{at}"
        lasts = (process.looked_s or 0.0) >= HUNG_S and not gets_on(process)
        return "polls" if lasts and self.kept_for_good(pid) else "unclear", says, False

    def kept_for_good(self, pid: int) -> bool:
        """Is the call in which a thread keeps the interpreter lock from the main one none that is
        known to come to its end?
        """
        keeper = self.gil_keeper(pid)
        return keeper is not None and not bounded_work(keeper.frames, self.sites)

    def _without_stack(self, pid: int, process: ProcessState | None) -> tuple[Kind, str]:
        """What /proc alone says. Of a rank whose stack was refused that is too little: its Python
        may wait for anything. A command that it started has no other stack.
        """
        if process is None or busy(process):
            return ("works", "uses the processor") if process is not None else ("unseen", "")
        leaf, op = sleep_of(process)
        if process.role not in ("child", "compiler") or not leaf:
            return "unseen", ""
        fresh = process.asleep_s is not None and process.asleep_s < FRESH_S
        if leaf == "net-io" and fresh and pid in self.receives:
            return "works", "receives data"
        if leaf == "child-wait":
            for child in self.children(pid):
                activity = self.activity(child.pid)
                if activity.goes_on:
                    return "works", f"waits for its child {child.pid}, which {activity.says}"
        return "still", "sleeps" if leaf == "sleep" else f"{_AWAITING.get(leaf, 'waits')} ({op})"

    def _by_stack(
        self, pid: int, process: ProcessState | None, main: MainThread, where: str
    ) -> tuple[Kind, str, bool]:
        looks = self.looks(pid)
        stacks = [look.frames for look in looks] or [main.frames]
        same = main.moved is not True
        fresh = (
            process is not None
            and process.asleep_s is not None
            and process.asleep_s < FRESH_S
            and process.state != "R"
        )
        if main.leaf in IN_COLLECTIVE or main.leaf == AT_THE_STORE:
            return self._in_collective(main, same=same, fresh=fresh, where=where)
        if process is not None and busy(process) and looks:
            return self._computing(process, looks, where)
        helped = self._helped(pid, main, process)
        if helped == "works":
            return "works", f"waits{where} for threads of its own that work", False
        if helped is not None:
            says = (
                f"waits{where} while other threads of its process work, and nothing tells whether"
                " it waits for one of these"
            )
            return helped, says, False
        if main.op == "debugger":
            return "still", f"waits at a debugger's prompt{where}", False
        if main.leaf in ON_CHILDREN:
            return self._with_children(pid, same=same, where=where)
        asks = _asks_inside_a_call(process, stacks, main, self.sites)
        if asks:
            return "polls", f"{asks}{where}", False
        if fresh and main.leaf == "net-io" and pid in self.receives:
            return "works", f"receives data{where}", False
        return self._quiet(pid, stacks, main, same=same, fresh=fresh, where=where)

    def _in_collective(
        self, main: MainThread, *, same: bool, fresh: bool, where: str
    ) -> tuple[Kind, str, bool]:
        what = main.op or "a collective"
        if not same:
            return "works", f"goes through {what}{where}", False
        if fresh and main.leaf == "comm-wait":
            return "fresh", f"came to {what}{where} less than {FRESH_S:.0f} s ago", False
        return "still", f"waits in {what}{where}", False

    def _at_a_gpu(
        self, pid: int, process: ProcessState | None, main: MainThread, where: str
    ) -> tuple[Kind, str, bool] | None:
        """Who waits for a GPU asks all the while whether it is done: that it uses the processor
        says nothing. None where what else it does tells more.
        """
        waits, gpus = main.leaf == AT_A_GPU, self.gpus.get(pid, ())
        if process is None or not (waits or process.on_gpu) or not busy(process):
            return None
        looks = self.looks(pid)
        same = len({own_place(look.frames) for look in looks}) == 1
        hard = [gpu for gpu in gpus if gpu.works_hard]
        own = process.main_wrote_bytes  # a thread of telemetry writes in a rank that hangs, too
        goes_on = (
            not same
            or bool(process.wrote_bytes if own is None else own)
            or not never_sleeps(process)
            or self.moves_on(pid) is not None
        )
        if waits and hard and same:
            return (
                "works",
                f"waits{where} for GPU {hard[0].index}, which works ({hard[0].drawn})",
                False,
            )
        if waits and goes_on:
            return "works", f"goes on{where}", False
        looked_s = process.looked_s or 0.0
        long = looked_s >= HUNG_S and len(looks) > 2
        others_s = (process.all_cpu_s or 0.0) - (process.cpu_s or 0.0)
        alone = others_s <= IDLE_SHARE * looked_s or pid in self.values
        if waits and (not long or alone):
            return "still", f"waits for its GPU{where}", False
        may_wait = process.on_gpu and all(gpu.busy is not False for gpu in gpus)
        if may_wait and long and not goes_on and not gets_on(process):
            return "unclear", f"runs{where}: it computes, or waits for its GPU", False
        return None

    def _computing(
        self, process: ProcessState, looks: Sequence[Thread], where: str
    ) -> tuple[Kind, str, bool]:
        stacks = [look.frames for look in looks]
        holds = len(looks) > 1 and sum(look.owns_gil for look in looks) >= len(looks) - (
            1 if len(looks) > 2 else 0
        )
        same_stack = (
            len(stacks) > 1
            and len(
                {
                    tuple((frame.file, frame.name, frame.line) for frame in frames)
                    for frames in stacks
                }
            )
            == 1
        )
        if any(in_library(frames) for frames in stacks):
            return "works", f"computes{where}", False
        grows = gets_on(process)
        # Python that goes round keeps the interpreter lock; a thread that runs without it is in an
        # operation of C, inside a loop or not.
        runs_c = (uses_its_share(process) or never_sleeps(process)) and not any(
            look.owns_gil for look in looks
        )
        if (
            len(stacks) > 1
            and not grows
            and not runs_c
            and not counts_up(stacks, self.sites)
            and polls(stacks, self.sites)
        ):
            return "spins", f"spins in a loop{where}", True
        in_steps = counts_up(stacks, self.sites) or in_for_loop(stacks, self.sites)
        if (
            holds
            and same_stack
            and not in_steps
            and not bounded_work(stacks[-1], self.sites)
            and self._calls_out(looks[-1])
        ):
            says = f"is inside one native call{where} that keeps the interpreter lock"
            if not grows:
                return "spins", says, False
            if (process.looked_s or 0.0) >= LONG_CALL_S:
                return "unclear", f"{says}, for {process.looked_s:.0f} s at least", False
        return "works", f"computes{where}", False

    def _calls_out(self, look: Thread) -> bool:
        """Does the line where it stands call something? A stack that stays on the head of a loop
        or in an expression is Python at work, and so may be one in text that no file holds.
        """
        frame = look.frames[-1]
        site = self.sites.get((frame.file, frame.line))
        text = site.text if site is not None else frame.text
        if not text:
            return not frame.file.startswith("<")
        return "(" in text and not text.startswith(("for ", "while "))

    def _helped(self, pid: int, main: MainThread, process: ProcessState | None) -> Kind | None:
        """Do other threads of its process work while the main thread waits in a lock or for a
        result? `works` where it must be one of these that it waits for, `unclear` where another
        may hold it up: a thread of telemetry is busy in any job.
        """
        if main.leaf not in ("lock", "child-wait", "file-io"):
            return None
        by_thread: dict[int | None, list[Thread]] = {}
        for thread in self.threads.get(pid, ()):
            if not thread.main and thread.frames:
                by_thread.setdefault(thread.os_thread_id, []).append(thread)
        stacks = [[look.frames for look in looks] for looks in by_thread.values()]
        pooled = any(frame.file.endswith(_FUTURES) for frame in main.frames)
        if pooled:
            stacks = [looks for looks in stacks if any(map(_in_pool, looks))]
        stacks = [looks for looks in stacks if any(own_frames(frames) for frames in looks)]
        moves = [
            len({own_place(frames) for frames in looks}) > 1 and not polls(looks, self.sites)
            for looks in stacks
        ]
        # the threads of torch's RPC poll shared memory all the time, in a rank that leaves too
        burns = (
            process is not None
            and not any(frame.file.endswith(_OF_RPC) for frame in main.frames)
            and process.all_cpu_s is not None
            and bool(process.looked_s)
            and process.all_cpu_s >= BUSY_SHARE * (process.looked_s or 0.0)
        )
        joins = pooled or any(
            frame.function == "join" and frame.base == "threading.py" for frame in main.frames
        )
        serves = serves_others(main.frames)
        if (joins and moves and all(moves)) or (serves and (burns or any(moves))):
            return "works"
        asleep_s = process.asleep_s if process is not None else None
        if asleep_s is not None and asleep_s >= LONG_WAIT_S:
            return None
        return "unclear" if burns or any(moves) else None

    def _with_children(self, pid: int, *, same: bool, where: str) -> tuple[Kind, str, bool]:
        for child in self.awaited_children(pid):
            activity = self.activity(child.pid)
            thread = self.mains.get(child.pid)
            if activity.goes_on and not (thread is not None and thread.leaf == "worker-idle"):
                return (
                    "works",
                    f"waits{where} for its child {child.pid}, which {activity.says or 'works'}",
                    False,
                )
        return (
            ("still", f"waits for a child{where}", False)
            if same
            else ("works", f"goes on{where}", False)
        )

    def _spends(self, pid: int) -> bool:
        process = self.processes.get(pid)
        return (
            process is not None
            and process.cpu_s is not None
            and process.cpu_s >= COUNTING_SHARE * (process.looked_s or 0.0) > 0
        )

    def _working_child(self, pid: int) -> ProcessState | None:
        """A command that it has started and that works; one that stays in one long call of C
        works too, as far as anybody can see from outside.
        """
        for child in self.children(pid):
            activity = self.activity(child.pid)
            if child.role in ("child", "compiler") and (
                activity.goes_on or (activity.kind == "spins" and not activity.condition)
            ):
                return child
        return None

    def _quiet(
        self,
        pid: int,
        stacks: Sequence[Sequence[Frame]],
        main: MainThread,
        *,
        same: bool,
        fresh: bool,
        where: str,
    ) -> tuple[Kind, str, bool]:
        frames = stacks
        goes_round = len(frames) > 1 and polls(frames, self.sites) and (fresh or not same)
        if goes_round and counts_up(frames, self.sites) and self._spends(pid):
            return "works", f"goes on{where}", False
        if goes_round:
            worker = self._working_child(pid)
            if worker is not None:  # a loop around poll() or is_alive() asks for the end of that
                return (
                    "works",
                    (
                        f"asks again and again{where}, and its child {worker.pid}"
                        f" {self.activity(worker.pid).says}"
                    ),
                    False,
                )
            return (
                "polls",
                f"asks again and again{where}",
                waits_for_a_condition(frames, self.sites),
            )
        if not same:
            return "works", f"goes on{where}", False
        own_line = len(own_frames(frames[-1])) == len(frames[-1])
        if fresh and (
            (in_library(frames[-1]) and main.leaf not in AWAITS)
            or (own_line and main.leaf not in HELD and self._walks(frames))
        ):
            return "works", f"goes on{where}", False
        if main.leaf in AWAITS:
            does = "waits at a queue" if main.op == "queue" else _AWAITING.get(main.leaf, "waits")
            return "still", f"{does}{where}", False
        if fresh and not loops_of(frames, self.sites):
            return "fresh", f"is{where}", False
        return "still", f"stands{where}", False

    def _walks(self, frames: Sequence[Sequence[Frame]]) -> bool:
        """Does it come to that line for one thing after the other?"""
        return in_for_loop(frames, self.sites) or called_for_each(frames, self.sites)


_OF_RPC = ("torch/distributed/rpc/internal.py", "torch/distributed/rpc/api.py")
_FUTURES = ("concurrent/futures/_base.py", "multiprocessing/pool.py")
_POOLS = ("concurrent/futures/thread.py", "multiprocessing/pool.py")


def _in_pool(frames: Sequence[Frame]) -> bool:
    return any(frame.file.endswith(_POOLS) for frame in frames)


_AWAITING = {
    "sleep": "sleeps",
    "lock": "waits for a lock",
    "net-io": "waits for the network",
    "file-io": "waits for a file",
    "child-wait": "waits for a child",
    "teardown": "is on its way out",
}


def is_helper(process: ProcessState) -> bool:
    """Python's own servants of multiprocessing, which wait for work as long as their parent
    lives.
    """
    return any(
        word in process.cmdline
        for word in (
            "multiprocessing.resource_tracker",
            "multiprocessing.forkserver",
            "torch_shm_manager",
        )
    )


def _asks_inside_a_call(
    process: ProcessState | None, stacks: Sequence[Sequence[Frame]], main: MainThread, sites: Sites
) -> str:
    """Does one call of the user's line sleep and try again, time after time? That is a library's
    or the C code's wait for something.
    """
    if (
        process is None
        or len(stacks) < 2
        or sleeps_in(process.wchan, process.syscall) != ("sleep", "sleep")
    ):
        return ""
    if (
        len(
            {
                tuple((frame.file, frame.name, frame.line) for frame in own_frames(frames))
                for frames in stacks
            }
        )
        > 1
    ):
        return ""
    if main.leaf == "net-io":
        # what waits for an answer sleeps in the socket; who sleeps beside it has been turned away
        return "tries again and again"
    frame = stacks[-1][-1]
    site = sites.get((frame.file, frame.line))
    text = site.text if site is not None else frame.text
    if (
        main.leaf == "sleep"
        and all(len(own_frames(frames)) == len(frames) for frames in stacks)
        and "(" in text
        and not _SLEEPS.search(text)
    ):
        return "sleeps and asks again inside one call"
    return ""
