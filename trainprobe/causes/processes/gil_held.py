"""One thread keeps the interpreter lock inside a native call, and its process does nothing else.

A C extension that works for minutes without releasing the lock, a regular expression that explodes, a call that blocks while it holds
the lock: no other Python thread of that process runs, heartbeats and watchdogs included.

It is recognised by py-spy: the same thread owns the lock and stands at the same Python line in all looks. A thread that waits
without the lock rules it out.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import WAITS_FOR_RANKS, Scene, weighing
from trainprobe.causes.words import fix, native_stack, ranks_say, sentence, subject
from trainprobe.facts import Facts, Thread
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    for rank in group.ranks:
        thread, process = scene.thread(rank), scene.process(rank)
        if thread is None or thread.source != "py-spy" or thread.looks < 2:
            continue
        if not thread.owns_gil:
            yield weighing(-26, "suspects-stack", f"The main thread of rank {rank} waits without the interpreter lock", thread)
        elif thread.moved is False and thread.leaf not in WAITS_FOR_RANKS:
            looks = scene.looks(rank)
            always = bool(looks) and all(look.owns_gil for look in looks)
            if always and _same_line(looks):
                blocked = process is not None and process.state in ("S", "D")
                # A thread that sleeps and yet owns the lock can only be inside a native call; one that computes may be plain Python.
                points = 13 if blocked or thread.leaf == "native-run" else 6
                says = f"Rank {rank} owns the interpreter lock at {thread.where} in all {len(looks)} looks"
                yield weighing(points, "suspects-stack", says, thread, *looks)
                if blocked and process is not None:
                    yield weighing(13, "process-state-and-locks", f"It sleeps in the kernel (state {process.state}) while it owns the lock", process)


def _same_line(looks: tuple[Thread, ...]) -> bool:
    return len({(look.frames[-1].file, look.frames[-1].line) for look in looks if look.frames}) == 1


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    threads = scene.threads(group.ranks)
    where = f" at {threads[0].where}" if threads and threads[0].where else ""
    return sentence(f"{subject(scene)} holds the interpreter lock inside a native call{where}, so none of its other threads runs")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    threads = scene.threads(group.ranks)
    where = threads[0].where if threads else "that line"
    return (
        fix(scene, "See the native call", f"the Python line is {where}", *native_stack(scene, ranks_say(group.ranks[:1], capital=False))),
        fix(
            scene,
            "Keep it out of the training process",
            "bound its input, move it into a process of its own, or use a build of the extension that releases the lock",
        ),
    )


CAUSE = Cause(
    id="gil-held",
    title="A native call keeps the interpreter lock",
    means="One thread keeps the interpreter lock inside a native call; its process does nothing else.",
    telling="The same thread owns the lock at the same Python line in all looks, and sleeps or computes natively there.",
    modes=("hang", "slow"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="py-spy dump --native --pid PID, which names the native function",
    refines="rank-stuck",
)
