"""Threads of one process wait for each other's locks.

Thread A holds one lock and wants a second; thread B holds the second and wants the first. So does a
thread that joins another while it holds what that one wants, and one that takes a lock twice which
is not made for that.

It is recognised by two threads of one process that stand at lines which take a lock, each below a
`with` on the lock that the other wants. The names are read from the source, so two locks of one
name would look like one. Threads that move on rule it out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import ends, others_wait, threads_of
from trainprobe.causes.phrases import Fixes, file_line, fixes, subject
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.facts import Thread
from trainprobe.stacks.places import is_user


def _weigh(scene: Scene) -> Weighings:
    found = circle(scene)
    if not found:
        return
    threads = [one.thread for one in found]
    yield weighing(13, "suspects-stack", f"In pid {threads[0].pid}, {says(found)}", *threads)
    text = "The source around those lines closes the circle"
    yield weighing(
        10, "source", text, *(site for one in found for site in scene.sites(one.thread.frames))
    )
    main = first_found(
        thread
        for thread in (*ends(scene), *scene.threads(scene.suspects))
        if thread.pid == threads[0].pid
    )
    if main is not None and main.moved:
        yield weighing(-13, "suspects-stack", "Its main thread moves on between the looks", main)
    yield from others_wait(scene)


def _pids(scene: Scene) -> tuple[int, ...]:
    return tuple(dict.fromkeys(one.thread.pid for one in circle(scene)))


def _summary(scene: Scene) -> str:
    return (
        f"{subject(scene)} (pid {_pids(scene)[0]}) has threads that wait for each other:"
        f" {says(circle(scene))}"
    )


FIXES = """
Take the locks in one order
    look at {places}: every thread must take them in the same order
    or release the first before the second
Or take a lock once
    threading.RLock() where one thread comes back to its own lock; no callback and no join while a
        lock is held
"""


def _fixes(scene: Scene) -> Fixes:
    places = " and ".join(one.where for one in circle(scene))
    return fixes(FIXES, places=places)


# What locks the threads of one process want and hold, as the source around their lines spells
# them. A Python lock shows neither its `acquire` frame nor its owner: a futex is all that the
# kernel tells. The text of the user's own lines is what is left.
_WANTS = re.compile(
    r"\bwith\s+(?P<with>[\w.\[\]'\"]+)(?:\s+as\s+\w+)?\s*(?:,.*)?:|(?P<call>[\w.\[\]]+)\.acquire\("
)
_JOINS = re.compile(r"[\w.\[\]]+\.join\(\)?")
_NO_LOCKS = re.compile(
    r"no_grad|open|autocast|profiler|inference_mode|join|catch_warnings|suppress"
)


@dataclass(frozen=True)
class Waiting:
    """A thread at a line that takes a lock: the locks it wants and holds, as in the source."""

    thread: Thread
    where: str
    wants: str
    holds: frozenset[str]
    joins: bool


def _name(spelled: str) -> str:
    return spelled.rsplit(".", 1)[-1]


def _waiting(scene: Scene, thread: Thread) -> Waiting | None:
    own = [frame for frame in thread.frames if is_user(frame)]
    sites = scene.sites(own[-1:])
    if not sites:
        return None
    here = sites[-1]
    match = _WANTS.search(here.text)
    joins = (
        match is None
        and _JOINS.search(here.text) is not None
        and any(frame.base == "threading.py" for frame in thread.frames[-4:])
    )
    if match is None and not joins:
        return None
    wanted = _name(match["with"] or match["call"]) if match is not None else ""
    blocks = [
        block
        for site in scene.sites(own)
        for block in site.blocks
        if block.kind == "with" and not (site is here and block.line == here.line)
    ]
    held = {
        _name(found.group("with"))
        for block in blocks
        if (found := _WANTS.search(block.text)) is not None and found.group("with")
    }
    return Waiting(
        thread,
        file_line(here.file, here.line),
        wanted,
        frozenset(name for name in held if not _NO_LOCKS.search(name)),
        joins,
    )


def circle(scene: Scene) -> tuple[Waiting, ...]:
    """Threads of one process that wait for each other, or one that wants what it holds."""
    for pid in dict.fromkeys(
        thread.pid for thread in (*ends(scene), *scene.threads(scene.suspects))
    ):
        found = [
            one for thread in threads_of(scene, pid) if (one := _waiting(scene, thread)) is not None
        ]
        for one in found:
            for other in found:
                if (
                    one is not other
                    and other.wants in one.holds
                    and (one.wants in other.holds or one.joins)
                ):
                    return (one, other)
            if one.wants and one.wants in one.holds:
                return (one,)
    return ()


def says(threads: tuple[Waiting, ...]) -> str:
    """Who wants what and holds what, in words."""
    parts = []
    for one in threads:
        name = (
            "MainThread"
            if one.thread.main
            else one.thread.name or f"thread {one.thread.os_thread_id}"
        )
        parts.append(
            f"{name} at {one.where} {'joins a thread' if one.joins else f'wants {one.wants}'} and"
            f" holds {', '.join(sorted(one.holds))}"
        )
    return "; ".join(parts)


CAUSE = Cause(
    id="thread-deadlock",
    title="Threads of one process wait for each other",
    modes=("hang", "slow"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    pids=_pids,
    would_settle=(
        "py-spy dump --pid <PID>, and the source around the lines at which its threads take locks"
    ),
    refines="rank-stuck",
    accounts_for=("data-worker-stuck", "fork-inherited-lock"),
)
