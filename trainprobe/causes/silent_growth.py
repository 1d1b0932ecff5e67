"""A cell of the user's command that computed in silence until it was ended: did smaller ones show that its work grows too fast with the rows?"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.awaited import endless
from trainprobe.causes.scene import Scene, weighing
from trainprobe.facts import Rung
from trainprobe.model.diagnosis import Weighing
from trainprobe.scaling import Point, TooFewError, fit, steep
from trainprobe.scaling.saying import amount, number
from trainprobe.waits.silent_work import SilentWork, silent_work

NOISE_S = 0.5  # two starts of one program differ by as much
GROWN = 1.3
FASTER = 1.5  # times what growth in step would need by now


def silently_grown(scene: Scene) -> SilentWork | None:
    """The work of the group's cell, where the group's ranks were seen to compute."""
    rung = next((rung for rung in scene.facts.of(Rung, cell=scene.cell) if rung.outgrown), None)
    work = silent_work(scene.facts, rung) if rung is not None else None
    moved = [thread for thread in scene.threads(scene.group.ranks) if thread.moved]
    return work if work is not None and work.smaller and moved and not any(endless(scene, thread) for thread in moved) else None


def growth_says(work: SilentWork) -> str:
    shown = ", ".join(f"{amount(point.value, 's')} for {number(point.size)} rows" for point in work.smaller[-3:])
    return f"{shown}, and more than {amount(work.took_s, 's')} for {number(work.rung.rows or 0)}"


def weigh_silent(scene: Scene) -> Iterator[Weighing]:
    """Only where the smaller cells themselves grew is it beyond doubt: a loop without an end looks alike at one size."""
    work = silently_grown(scene)
    if work is None:
        return
    points = 26 if _grew(work) and _faster(work) else 13
    yield weighing(points, "probe-outcome", f"The work grows with the rows: {growth_says(work)}", work.rung, *work.facts)
    thread = next(thread for thread in scene.threads(scene.group.ranks) if thread.moved)
    yield weighing(6, "suspects-stack", f"Rank {thread.rank} is at work{f' at {thread.where}' if thread.where else ''}, and moved on between the looks", thread)


def _grew(work: SilentWork) -> bool:
    first, last = work.smaller[0].value, work.smaller[-1].value
    return len(work.smaller) > 1 and last - first > NOISE_S and last > GROWN * first


def _faster(work: SilentWork) -> bool:
    """Has it taken longer already than growth in step allows?"""
    rows, last = float(work.rung.rows or 0), work.smaller[-1]
    if work.took_s > FASTER * last.value * rows / last.size:
        return True
    try:
        return steep(fit([*work.smaller, Point(rows, work.took_s)])) is True
    except TooFewError:
        return False
