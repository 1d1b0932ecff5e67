"""A rank that works while all others wait for it: what shows that it does, and whether anything
shows that it gets on.
"""

from __future__ import annotations

from trainprobe.causes.child_processes import (
    circling_worker,
    ends,
    goes_on,
    goes_round,
    longest_sleep,
)
from trainprobe.causes.scene import WAITS_FOR_RANKS, Scene
from trainprobe.facts import Block, Deadline, MainThread
from trainprobe.stacks.rank_conditions import asks_for_rank
from trainprobe.waits.slowness import IDLE_S

WORK = frozenset({"file-io", "python-run", "native-run", "child-wait", "dataloader", "net-io"})
MOVED, COMPUTED = "moved on in its own code", "computed"  # and a loop without an end does so too


def waited(scene: Scene) -> tuple[float, float, tuple[Deadline, ...]]:
    """(seconds of the longest sleep among the others, the group's timeout, facts); 0 if unknown."""
    limits = tuple(fact for fact in scene.of(Deadline) if fact.kind == "group" and fact.seconds)
    return (
        longest_sleep(scene, scene.others),
        min((fact.seconds or 0.0 for fact in limits), default=0.0),
        limits,
    )


def _least(thread: MainThread) -> int:
    """Bytes that count as work; polling a service writes as much as a request has."""
    return 64_000 if thread.leaf == "net-io" else 1


def _kept_others_idle(scene: Scene, thread: MainThread) -> bool:
    """Does the verdict say that it works alone, though it sleeps now and then, as a slow disk or a
    service makes it do?
    """
    return scene.group.mode == "slow" and thread.role == "rank" and waited(scene)[0] >= IDLE_S


def working(scene: Scene) -> tuple[tuple[MainThread, str], ...]:
    """The suspects' threads outside collectives that make progress, each with what shows it. CPU
    time alone shows none: a loop that polls has it too.
    """
    if circling_worker(scene) is not None:
        return ()
    found = []
    for thread in ends(scene):
        if (
            (thread.leaf in WORK or _kept_others_idle(scene, thread))
            and thread.leaf not in WAITS_FOR_RANKS
            and not thread.importing
            and not thread.lock_path
        ):
            process = scene.process_of(thread.pid)
            if (
                scene.live is not None
                and process is not None
                and not scene.watch.activity(thread.pid).goes_on
            ):
                continue
            doing = (
                goes_on(process)
                if (process is not None and (process.wrote_bytes or 0) >= _least(thread))
                or (thread.leaf == "file-io" and thread.moved)
                else ""
            )
            if (
                not doing
                and thread.moved
                and not (thread.role == "rank" and goes_round(scene, thread.rank or 0))
            ):
                doing = MOVED
            if not doing and scene.live is not None and thread.role == "rank":
                # neither moved on nor wrote, yet no loop that polls and no call that goes round
                doing = COMPUTED if scene.watch.activity(thread.pid).kind == "works" else ""
            if doing:
                found.append((thread, doing))
    return tuple(found)


def own_blocks(scene: Scene, thread: MainThread) -> list[Block]:
    """The conditions on the rank around the work."""
    return [
        block
        for site in scene.sites(thread.frames)
        for block in site.blocks
        if block.kind == "if" and asks_for_rank(block)
    ]


def may_go_round(scene: Scene) -> MainThread | None:
    """The rank that works alone, for as long as a loop without an end may have caught it: nothing
    shows that it gets on, and no condition on the rank makes the work a task of its own.
    """
    for thread, doing in working(scene)[:1]:
        if doing in (MOVED, COMPUTED) and waited(scene)[0] >= IDLE_S:
            seen = scene.watch.moves_on(thread.pid) is not None
            return None if seen or own_blocks(scene, thread) else thread
    return None
