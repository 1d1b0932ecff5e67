"""Faults that lie in what the ranks of a live job do not share, weighed where all of them wait for
each other: a rank that stands elsewhere is late for a reason of its own.
"""

from __future__ import annotations

from trainprobe.causes.diverging_calls import camps, places
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.waits.standings import AT_THE_STORE, IN_COLLECTIVE
from trainprobe.waits.unlike_ranks import DEBUG, INTERFACES, UnlikeRanks, unlike_ranks

NCCL = ("NCCL",)
IFNAMES = tuple(INTERFACES.values())
JOINING = frozenset({"init_process_group", "new_group", "new_subgroups", "split_group"})


def differences(scene: Scene) -> tuple[UnlikeRanks, ...]:
    """The faults among them, for all causes; none unless all ranks wait for each other. Found once
    for a scene.
    """
    if differences not in scene.found:
        scene.found[differences] = _differences(scene)
    known: tuple[UnlikeRanks, ...] = scene.found[differences]
    return known


def _differences(scene: Scene) -> tuple[UnlikeRanks, ...]:
    threads = scene.threads(scene.world)
    together = all(one.leaf == AT_THE_STORE or one.leaf in IN_COLLECTIVE for one in threads)
    if scene.live is None or scene.group.mode != "hang" or not threads or not together:
        return ()
    return tuple(
        one for one in unlike_ranks(scene.facts, scene.live) if one.fault and _hinders(scene, one)
    )


def other_differences(scene: Scene) -> tuple[UnlikeRanks, ...]:
    """Those that have no cause of their own."""
    return tuple(one for one in differences(scene) if one.name not in (*NCCL, *IFNAMES))


def named_differences(scene: Scene, names: tuple[str, ...]) -> tuple[UnlikeRanks, ...]:
    return tuple(one for one in differences(scene) if one.name in names)


def weigh_differences(scene: Scene, found: tuple[UnlikeRanks, ...]) -> Weighings:
    """What is chosen by each rank for itself may still fit; a further group that only some make
    cannot come to be, and ranks of two programs meet by chance only.
    """
    for one in found:
        chosen = one.name.startswith("NCCL_") and one.name not in IFNAMES
        points = 10 if chosen else 13
        if one.name == DEBUG or one.of_source:
            points = 26
        if one.of_file and not _parts_the_calls(scene, one):
            points = 6  # they may differ in a comment
        yield weighing(points, "environment-and-limits", one.says, ids=one.evidence)


def weigh_other_copies(scene: Scene) -> Weighings:
    """For what is read out of the lines at which ranks part: those of two programs tell nothing of
    each other.
    """
    for one in differences(scene):
        if one.of_source and (not one.of_file or _parts_the_calls(scene, one)):
            says = f"Their lines are of unlike copies of {one.name.partition(':')[0]}: {one.says}"
            yield weighing(-13, "environment-and-limits", says, ids=one.evidence)
            return


def _parts_the_calls(scene: Scene, one: UnlikeRanks) -> bool:
    """Do exactly these ranks stand in another call than the rest?"""
    return len(sides := camps(places(scene))) > 1 and one.ranks in map(tuple, map(sorted, sides))


def _hinders(scene: Scene, one: UnlikeRanks) -> bool:
    """A group that only the ranks with this debug level make is hindered while they make it."""
    if one.name != DEBUG:
        return True
    return any(
        thread.op in JOINING or any(frame.name in JOINING for frame in thread.frames)
        for thread in scene.threads(scene.world)
    )
