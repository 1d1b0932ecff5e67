"""Threads of one process wait for each other's locks.

Thread A holds one lock and wants a second; thread B holds the second and wants the first. So does a thread that joins another while it holds
what that one wants, and one that takes a lock twice which is not made for that.

It is recognised by two threads of one process that stand at lines which take a lock, each below a `with` on the lock that the other wants.
The names are read from the source, so two locks of one name would look like one. Threads that move on rule it out.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.ends import ends, others_wait
from trainprobe.causes.held_locks import circle, says
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.words import fix, sentence, subject
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    found = circle(scene)
    if not found:
        return
    threads = [one.thread for one in found]
    yield weighing(13, "suspects-stack", f"In pid {threads[0].pid}, {says(found)}", *threads)
    yield weighing(10, "source", "The source around those lines closes the circle", *(site for one in found for site in scene.sites(one.thread.frames)))
    main = next((thread for thread in (*ends(scene), *scene.threads(scene.suspects)) if thread.pid == threads[0].pid), None)
    if main is not None and main.moved:
        yield weighing(-13, "suspects-stack", "Its main thread moves on between the looks", main)
    yield from others_wait(scene)


def _pids(facts: Facts, group: SuspectGroup) -> tuple[int, ...]:
    return tuple(dict.fromkeys(one.thread.pid for one in circle(Scene(facts, group))))


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    return sentence(f"{subject(scene)} (pid {_pids(facts, group)[0]}) has threads that wait for each other: {says(circle(scene))}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    places = " and ".join(one.where for one in circle(scene))
    return (
        fix(scene, "Take the locks in one order", f"look at {places}: every thread must take them in the same order", "or release the first before the second"),
        fix(scene, "Or take a lock once", "threading.RLock() where one thread comes back to its own lock; no callback and no join while a lock is held"),
    )


CAUSE = Cause(
    id="thread-deadlock",
    title="Threads of one process wait for each other",
    means="Threads of one process wait for each other's locks.",
    telling="Two threads of a process stand in an acquire, each below a `with` on the lock that the other wants.",
    modes=("hang", "slow"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    pids=_pids,
    would_settle="py-spy dump --pid <PID>, and the source around the lines at which its threads take locks",
    refines="rank-stuck",
    accounts_for=("data-worker-stuck", "fork-inherited-lock"),
)
