"""One thread keeps the interpreter lock inside a native call, and its process does nothing else.

A C extension that works for minutes without releasing the lock, a regular expression that explodes,
a call that blocks while it holds
the lock: no other Python thread of that process runs, heartbeats and watchdogs included.

It is recognised by py-spy: the same thread owns the lock and stands at the same Python line in all
looks. A main thread that waits without the lock rules it out, unless it is that lock that it asks
for, again and again, while another thread of its process keeps it.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.phrases import Fixes, fix, native_stack, ranks_say, short, subject
from trainprobe.causes.scene import WAITS_FOR_RANKS, Scene, Weighings, first_found, weighing
from trainprobe.facts import LogEvent, MainThread, Thread
from trainprobe.stacks.places import is_native, user_frame

# A loop of Python's own that holds a thread at one line: of a statement, or of a comprehension with
# a frame of its own or without.
_LOOP = re.compile(r"\bfor\b.+\bin\b")
_OF_A_COMPREHENSION = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")


def _weigh(scene: Scene) -> Weighings:
    if reported := _from_log(scene):
        yield weighing(
            13, "suspects-log", f"The watchdog says: {short(reported[0].line, 120)}", *reported
        )
    for rank in scene.ranks:
        thread, process = scene.thread(rank), scene.process(rank)
        if worker := _worker(scene, rank):
            says = (
                f"Worker {worker.pid}, for which rank {rank} waits, owns the interpreter lock at"
                f" {worker.where} in all {worker.looks} looks"
            )
            yield weighing(13, "suspects-stack", says, worker)
            says = "It computes inside that one call all the time"
            yield weighing(6, "process-state-and-locks", says, scene.process_of(worker.pid))
            continue
        if thread is None or thread.source != "py-spy" or thread.looks < 2:
            continue
        if keeper := scene.watch.gil_keeper(thread.pid):
            says = (
                f"Thread {keeper.name} of rank {rank} owns the interpreter lock{_at(keeper)} in all"
                f" {thread.looks} looks"
            )
            yield weighing(13, "suspects-stack", says, keeper)
            if process is not None and process.looked_s:
                says = (
                    f"Its main thread asked for the lock {process.switches} times in"
                    f" {process.looked_s:.1f} s and did not get it"
                )
                yield weighing(13, "process-state-and-locks", says, process)
            continue
        if not thread.owns_gil:
            says = f"The main thread of rank {rank} waits without the interpreter lock"
            yield weighing(-26, "suspects-stack", says, thread)
        elif thread.moved is False and thread.leaf not in WAITS_FOR_RANKS:
            looks = scene.looks(rank)
            always = bool(looks) and all(look.owns_gil for look in looks)
            if always and _same_line(looks):
                blocked = process is not None and process.state in ("S", "D")
                # A thread that sleeps and yet owns the lock can only be inside a native call; one
                # that computes may be plain Python.
                points = 6
                if blocked or thread.leaf == "native-run" or _in_one_call(scene, thread):
                    points = 13
                says = (
                    f"Rank {rank} owns the interpreter lock at {thread.where} in all {len(looks)}"
                    " looks"
                )
                yield weighing(points, "suspects-stack", says, thread, *looks)
                if blocked and process is not None:
                    says = f"It sleeps in the kernel (state {process.state}) while it owns the lock"
                    yield weighing(13, "process-state-and-locks", says, process)
                elif process is not None and process.state == "R" and _in_one_call(scene, thread):
                    says = "It computes inside that one call all the time"
                    yield weighing(6, "process-state-and-locks", says, process)


def _at(thread: Thread) -> str:
    frame = user_frame(thread.frames)
    return f" at {frame.where}" if frame is not None else ""


def _keeper(scene: Scene) -> Thread | None:
    """A thread beside the main one of a suspect that keeps the lock from it."""
    threads = scene.threads(scene.ranks)
    return first_found(found for one in threads if (found := scene.watch.gil_keeper(one.pid)))


def _from_log(scene: Scene) -> tuple[LogEvent, ...]:
    """Ranks whose watchdog could not take the GIL; such a rank is the culprit."""
    return tuple(event for event in scene.of(LogEvent) if event.event == "gil-held")


def _ranks(scene: Scene) -> tuple[int, ...]:
    reported = tuple(sorted({event.rank for event in _from_log(scene) if event.rank is not None}))
    return reported if reported and not scene.threads(scene.ranks) else scene.ranks


def _worker(scene: Scene, rank: int) -> MainThread | None:
    """The awaited loader worker that computes in one call in all looks and holds the GIL."""
    parent = scene.thread(rank)
    if parent is None or parent.leaf != "dataloader":
        return None
    for worker in scene.workers([rank]):
        process = scene.process_of(worker.pid)
        looks = [
            look
            for look in scene.of(Thread, rank=rank)
            if look.pid == worker.pid and look.main and not look.native
        ]
        owns = (
            len(looks) > 1
            and all(look.owns_gil for look in looks)
            and worker.moved is False
            and _same_line(tuple(looks))
        )
        if owns and process is not None and process.state == "R" and _in_one_call(scene, worker):
            return worker
    return None


def _in_one_call(scene: Scene, thread: MainThread) -> bool:
    """Is it at a line that calls something outside any loop? Native frames settle it."""
    if any(value.changes for value in scene.watch.values.get(thread.pid, ())):
        return False  # read again and again, its values were others: it goes on between the reads
    threads = [fact for fact in scene.of(Thread, rank=thread.rank) if fact.pid == thread.pid]
    native = [fact for fact in threads if fact.native and fact.main and fact.frames]
    if native:
        return is_native(native[-1].frames[-1])
    if thread.frames and thread.frames[-1].name.endswith(_OF_A_COMPREHENSION):
        return False
    site = next(iter(scene.sites(thread.frames[-1:])), None)
    if site is None or "(" not in site.text or _LOOP.search(site.text):
        return False
    return not site.text.lstrip().startswith(("while ", "if ", "elif "))


def _same_line(looks: tuple[Thread, ...]) -> bool:
    return len({(look.frames[-1].file, look.frames[-1].line) for look in looks if look.frames}) == 1


def _summary(scene: Scene) -> str:
    threads = scene.threads(scene.ranks)
    if worker := first_found(
        found for rank in scene.ranks if (found := _worker(scene, rank)) is not None
    ):
        return (
            f"{subject(scene)} waits in the data loader for worker {worker.pid}, which does not"
            f" come back from one native call at {worker.where}"
        )
    where = f" at {threads[0].where}" if threads and threads[0].where else ""
    if keeper := _keeper(scene):
        where = _at(keeper)
    return (
        f"{subject(scene, _ranks(scene))} holds the interpreter lock inside a native"
        f" call{where}, so none of its other threads runs"
    )


def _fixes(scene: Scene) -> Fixes:
    workers = tuple(found for rank in scene.ranks if (found := _worker(scene, rank)) is not None)
    threads = workers or scene.threads(scene.ranks)
    where = threads[0].where if threads else "that line"
    if keeper := _keeper(scene):
        where = _at(keeper).removeprefix(" at ") or where
    return (
        fix(
            "See the native call",
            f"the Python line is {where}",
            *native_stack(
                scene,
                "the worker" if workers else ranks_say(scene.ranks[:1], capital=False),
                *(worker.pid for worker in workers[:1]),
            ),
        ),
        fix(
            "Keep it out of the training process",
            "bound its input, give it a process of its own, or a build that releases the lock",
        ),
    )


CAUSE = Cause(
    id="gil-held",
    title="A native call keeps the interpreter lock",
    modes=("hang", "slow"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle="py-spy dump --native --pid <PID>, which names the native function",
    refines="rank-stuck",
    accounts_for=("data-worker-stuck",),
)
