"""Ranks in which a second thread stands in a collective, beside a main thread that is in one too or
that waits for it: a checkpoint thread that gathers while the main thread is in its backward pass,
say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainprobe.causes.child_processes import threads_of
from trainprobe.causes.diverging_calls import Place, camps, places
from trainprobe.causes.scene import Scene
from trainprobe.facts import MainThread, Thread
from trainprobe.stacks.classify import classify
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_standard, user_frame


@dataclass(frozen=True)
class ConcurrentCalls:
    """The place of the main thread's call, and that of another `thread` of the same rank."""

    main: Place
    other: Place
    thread: Thread

    def __str__(self) -> str:
        return f"the main thread in {self.main}, thread {self.thread.name} in {self.other}"


def second_calls(scene: Scene) -> Mapping[int, tuple[Place, Thread]]:
    """For each rank with a thread of Python's in a collective beside its main thread: the place of
    that call, and the thread. Found once for a scene.

    Autograd's own threads are no second callers: what a hook or a backward of the user's calls
    there, the main thread calls by its `backward()`.
    """
    if second_calls not in scene.found:
        mains = [main for rank in scene.world if (main := scene.thread(rank)) is not None]
        found = ((main.rank, _second_call(scene, main)) for main in mains)
        scene.found[second_calls] = {rank: call for rank, call in found if call is not None}
    known: Mapping[int, tuple[Place, Thread]] = scene.found[second_calls]
    return known


def concurrent_calls(scene: Scene) -> dict[int, ConcurrentCalls]:
    """The two calls of each rank that makes two at once; empty unless all ranks do, or the main
    threads of all stand in one and the same call.

    Where the main threads stand apart, that decides; where they stand in one call that does not
    end, the second thread's call is what has come between.
    """
    found = places(scene)
    twice = {
        rank: ConcurrentCalls(place, *second)
        for rank, place in found.items()
        if (second := second_calls(scene).get(rank)) is not None
    }
    all_met = len(found) == len(scene.world) > 1
    return twice if all_met and (len(twice) == len(found) or len(camps(found)) == 1) else {}


def names_its_group(scene: Scene, two: ConcurrentCalls) -> bool:
    """Does the line of the other thread's call name a group? Then the calls may be apart."""
    site = scene.site(two.other.file, two.other.line)
    return site is not None and "group" in site.text


def _second_call(scene: Scene, main: MainThread) -> tuple[Place, Thread] | None:
    for thread in threads_of(scene, main.pid):
        where = classify(thread.frames)
        if thread.main or where.leaf != "comm-wait" or not _started(thread):
            continue
        frame = user_frame(thread.frames) or _first_of_library(thread.frames)
        if frame is not None and main.rank is not None:
            op = where.op or "a collective"
            place = Place(main.rank, op, frame.file, frame.line, thread.frames, thread)
            return place, thread
    return None


def _started(thread: Thread) -> bool:
    """Was it started by `threading`, and not by autograd?"""
    return any(
        frame.base == "threading.py" and frame.name.endswith("_bootstrap")
        for frame in thread.frames
    )


def _first_of_library(frames: tuple[Frame, ...]) -> Frame | None:
    """Where a thread of torch's own enters its work, such as that of its asynchronous save."""
    return next((frame for frame in frames if not is_standard(frame)), None)
