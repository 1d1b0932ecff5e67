"""Ranks in which two threads stand in collectives at once, such as a checkpoint thread that gathers
while the main thread is in its backward pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.causes.child_processes import threads_of
from trainprobe.causes.diverging_calls import Place, places
from trainprobe.causes.scene import Scene
from trainprobe.facts import Thread
from trainprobe.stacks.classify import classify
from trainprobe.waits.standings import IN_COLLECTIVE


@dataclass(frozen=True)
class ConcurrentCalls:
    """The place of the main thread's call, and that of another `thread` of the same rank."""

    main: Place
    other: Place
    thread: Thread

    def __str__(self) -> str:
        return f"the main thread in {self.main}, thread {self.thread.name} in {self.other}"


def concurrent_calls(scene: Scene) -> dict[int, ConcurrentCalls]:
    """The two calls of each rank, where all ranks of the world have two; else empty."""
    found = {}
    for rank, place in places(scene).items():
        main = scene.thread(rank)
        for thread in threads_of(scene, main.pid) if main is not None else ():
            where = classify(thread.frames)
            if not thread.main and where.user is not None and where.leaf in IN_COLLECTIVE:
                call = Place(
                    *(rank, where.op or "a collective", where.user.file, where.user.line),
                    thread.frames,
                    thread,
                )
                found[rank] = ConcurrentCalls(place, call, thread)
    return found if len(found) == len(scene.world) > 1 else {}


def names_its_group(scene: Scene, two: ConcurrentCalls) -> bool:
    """Does the line of the other thread's call name a group? Then the calls may be apart."""
    site = scene.site(two.other.file, two.other.line)
    return site is not None and "group" in site.text
