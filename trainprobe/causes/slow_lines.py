"""The line at which all ranks of a slow job spend most of their time, and what is done there."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.causes.scene import Scene
from trainprobe.facts import Samples, Thread
from trainprobe.stacks.asking import in_call
from trainprobe.stacks.places import user_frame
from trainprobe.waits.slow_steps import MAKES_INPUT, slow_steps


@dataclass(frozen=True)
class SlowLine:
    """`share` is of the sampled time, on the middle rank. `names` are those of its function and
    file; `asks` says that threads of each rank are in calls to a service meanwhile.
    """

    place: str
    share: float
    samples: tuple[Samples, ...]
    names: str = ""
    asks: bool = False

    @property
    def makes_input(self) -> bool:
        """By what the function, its class or its file is called."""
        return MAKES_INPUT.search(self.names) is not None


def slow_line(scene: Scene) -> SlowLine | None:
    """None where one rank is late, or no line takes half of the time on all; found once for a
    scene.
    """
    if slow_line not in scene.found:
        scene.found[slow_line] = _slow_line(scene)
    known: SlowLine | None = scene.found[slow_line]
    return known


def _slow_line(scene: Scene) -> SlowLine | None:
    if scene.group.mode != "slow" or scene.ranks:
        return None
    found = slow_steps(scene.facts, scene.cell, scene.world)
    if found is None or not found.place:
        return None
    samples = scene.of(Samples)
    there = next(
        frame
        for one in samples
        for spell in one.spells
        if (frame := user_frame(spell.frames)) is not None and frame.where == found.place
    )
    names = f"{there.name} {there.base.removesuffix('.py')}"
    return SlowLine(found.place, found.share, tuple(samples), names, _asks(scene, found.place))


def _asks(scene: Scene, place: str) -> bool:
    """Was a thread beside the main one in a network call in the looks that found the main one at
    this line, on each rank that any look found there?
    """
    pids = {process.pid for rank in scene.world if (process := scene.process(rank)) is not None}
    told = [one for pid in pids if (one := _asked(scene, pid, place)) is not None]
    return bool(told) and all(told)


def _asked(scene: Scene, pid: int, place: str) -> bool | None:
    by_look: dict[int, list[Thread]] = {}
    for thread in scene.of_process(Thread, pid):
        if not thread.native and thread.frames:
            by_look.setdefault(thread.look, []).append(thread)
    there = [
        threads
        for threads in by_look.values()
        if any(
            one.main and (frame := user_frame(one.frames)) is not None and frame.where == place
            for one in threads
        )
    ]
    if not there:
        return None
    return all(any(not one.main and in_call(one.frames) for one in threads) for threads in there)
