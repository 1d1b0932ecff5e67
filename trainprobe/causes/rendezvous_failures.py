"""Failed starts in logs: a store that gave up, and a number that was not the expected one."""

from __future__ import annotations

import re
from collections import Counter

from trainprobe.causes.phrases import Fixes, fix, ranks_say, sentence, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.startup_failures import (
    StartupFailure,
    captured,
    failed_of_something_else,
    final_exceptions,
    lines,
    made_steps,
    startup_failure,
    weigh_startup_failure,
)
from trainprobe.causes.statements import text_of
from trainprobe.facts import CollectiveCall, LogEvent, LogJob, LogProgress, LogWork
from trainprobe.model.diagnosis import Weighing
from trainprobe.signatures.messages import message
from trainprobe.waits.waits_told import ranks_not_come

GAVE_UP = message("meeting-told.gave-up")
MOST_RANKS = 65_536
SHOWS = (
    "rendezvous-timeout",
    "rendezvous-failed",
    "world-incomplete",
    "remote-shell-failed",
    "store-refused",
    "connect-failed",
    "rendezvous-closed",
    "rendezvous-lost",
)
_SETTING_UP = (
    "init_process_group",
    "_env_rendezvous_handler",
    "_tcp_rendezvous_handler",
    "_create_c10d_store",
    "next_rendezvous",
    "_store_based_barrier",
    # torchelastic's agents, which meet before they start any rank
    "_rendezvous",
    "_assign_worker_ranks",
    "_share_and_gather",
)
# The barrier at the end of init_process_group is the first use of a GPU.
_OF_A_GPU = re.compile(r"\b(?:CUDA|HIP|cuda runtime|cuBLAS|CUBLAS)(?: driver)? [Ee]rror\b")
BARRIER = message("meeting-told.barrier")
CLIENTS = r"(?P<joined>\d{1,7})/(?P<expected>\d{1,7}) clients joined"
CHECKED = message("meeting-told.checked")
WORLD = f"store based barrier on rank|{CHECKED}"
_WORLD_SHOWS = ("world-mismatch", "world-incomplete", "world-waits")
_END = ("rendezvous-timeout", "store-refused")
FIRST_TO_COME = 2


def weigh_gave_up(scene: Scene) -> Weighings:
    """The store did not open, or ranks were missing; later it repeats a lost host."""
    found = startup_failure(scene, GAVE_UP, *SHOWS)
    if found is not None:
        raised = scene.origin is not None and not found.last_words
        yield from weigh_startup_failure(
            scene, found, sure=13 if raised else 26, sign=6 if raised else 13, at_start=True
        )
        ended = lines(scene, "launcher-signalled")
        if ended and "RendezvousClosed" in found.text:
            says = f"The agents closed it when one was told to end: {short(ended[0].line, 80)}"
            yield weighing(-26, "suspects-log", says, ended[0])
        came = re.search(BARRIER, found.text)
        if came is not None and int(came["joined"]) > int(came["world_size"]):
            says = f"Nobody was missing: {came['joined']} came to a world of {came['world_size']}"
            yield weighing(-13, "probe-outcome", says, found.fact)
    elif not failed_of_something_else(scene):
        there = [
            exception
            for exception in final_exceptions(scene)
            if any(frame.name in _SETTING_UP for frame in exception.frames)
            and not _OF_A_GPU.search(text_of(exception))
        ]
        if there:
            says = f"It ended while the ranks met: {short(there[0].message or there[0].type)}"
            yield weighing(13, "suspects-log", says, there[0])
        elif (vain := _before_any_rank(scene)) is not None:
            says = f"The store gave up, and no rank had said anything: {short(vain.line, 100)}"
            yield weighing(13, "suspects-log", says, vain)


def _before_any_rank(scene: Scene) -> LogEvent | None:
    """The store's word that it gave up, where only the launcher has spoken: no rank, no step and no
    call of a group. Then nobody but a launcher can have waited there.
    """
    job = scene.one(LogJob)
    vain = [event for event in lines(scene, "store-timeout") if not event.captured.get("keys")]
    if job is None or not job.launcher or job.ranks or not vain:
        return None
    calls = scene.facts.of(CollectiveCall, cell=scene.cell)
    started = bool(made_steps(scene) or scene.of(LogProgress)) or bool(scene.of(LogWork))
    return None if calls or started or lines(scene, "unique-id-timeout") else vain[0]


def _counted(scene: Scene) -> tuple[StartupFailure, int, int] | None:
    """(line, processes that came, processes that were awaited) of a barrier at the start."""
    counted = startup_failure(scene, BARRIER, "world-incomplete", "world-waits") or startup_failure(
        scene, CLIENTS, "world-incomplete"
    )
    numbers = counted.captured if counted is not None else {}
    expected = numbers.get("world_size") or numbers.get("expected") or ""
    if counted is None or not expected or not numbers.get("joined"):
        return None
    return counted, int(numbers["joined"]), int(expected)


def _node_missing(joined: int, expected: int) -> bool:
    """Do so many lack that another node has sent nobody? The first to come prove nothing."""
    return FIRST_TO_COME < joined <= expected // 2


def weigh_who_came(scene: Scene) -> Weighings:
    """Those who wait in the store's barrier are all that it counts: the others are known. Else it
    is known how many most of the world lacks.
    """
    absent = ranks_not_come(scene.facts, scene.cell)
    waits = lines(scene, "world-waits")
    first = all((event.number("groups") or 1) == 1 for event in waits)  # who met before has started
    if not waits or not first or failed_of_something_else(scene):
        return
    world = max(event.number("world_size") or 0 for event in waits)
    counted = max(event.number("joined") or 0 for event in waits)
    if absent:
        says = (
            f"{world - len(absent)} of {world} ranks wait in the store's barrier, which has counted"
            f" no other: {ranks_say(absent, capital=False)} did not come"
        )
        yield weighing(13, "other-stacks", says, *waits[:8])
    elif world // 2 < counted < world:
        says = f"{counted} of {world} ranks have come to the store's barrier of the start"
        yield weighing(13, "other-stacks", says, *waits[:8])


def weigh_missing_node(scene: Scene) -> Weighings:
    """At the barrier of the start half of the ranks or more were missing."""
    found = _counted(scene)
    if found is not None and _node_missing(*found[1:]) and not failed_of_something_else(scene):
        counted, joined, expected = found
        says = f"Only {joined} of {expected} came, as where another node was not started"
        yield weighing(13, "other-stacks", says, counted.fact)


def weigh_world(scene: Scene) -> Weighings:
    """Too many processes mean a wrong number; too few may be a missing node."""
    if (found := _counted(scene)) is not None:
        counted, joined, expected = found
        # fewer are most often ranks that are late or gone
        points = 26 if joined > expected else 3 if _node_missing(joined, expected) else 6
        if failed_of_something_else(scene):
            points = 6  # who died first did not come to the barrier
        if not joined % max(expected, 1) and lines(scene, "preempted", "requeued"):
            points = 6  # each start of such a job may count in the same store
        says = f"{joined} processes came to a world of {expected}: {short(counted.text, 120)}"
        given, nodes, per_node = (
            scene.given(name) for name in ("world_size", "nodes", "gpus_per_node")
        )
        started = (
            given.number
            if given is not None
            else (
                nodes.number * per_node.number
                if nodes and per_node and nodes.number and per_node.number
                else None
            )
        )
        yield weighing(
            points if points <= 6 or counted.decides or joined > expected else 13,
            "suspects-log",
            says,
            counted.fact,
        )
        if started and started != expected:
            text = f"The launch is for {started:.0f} processes"
            yield weighing(13, "environment-and-limits", text, given or per_node)
    elif (twice := _announced_twice(scene)) is not None:
        yield twice
    else:
        # Two versions of NCCL do not understand each other's numbers either.
        yield from weigh_startup_failure(
            scene,
            startup_failure(scene, CHECKED, "world-mismatch"),
            sure=13 if lines(scene, "nccl-version-mismatch") else 26,
        )


def _announced_twice(scene: Scene) -> Weighing | None:
    """Several processes took each of some ranks, and the rest of the world took none: each node
    counts from 0.
    """
    joining = [event for event in scene.of(LogEvent) if event.event == "rank-joining"]
    taken: Counter[int] = Counter()
    for event in joining:
        if (rank := event.number("rank")) is not None:
            taken[rank] += event.count
    world = max((event.number("world") or 0 for event in joining), default=0)
    missing = [rank for rank in range(min(world, MOST_RANKS)) if rank not in taken]
    if not taken or not missing or min(taken.values()) < 2:
        return None
    says = (
        f"{ranks_say(sorted(taken))} of {world} were taken by {min(taken.values())} processes each,"
        f" and {ranks_say(missing, capital=False)} by none"
    )
    return weighing(13, "suspects-log", says, *joining[:4])


def giving_up_summary(scene: Scene) -> str:
    """The sentence of a rendezvous that a log tells of; empty where none does."""
    found = startup_failure(scene, GAVE_UP, *SHOWS)
    end = "".join(captured(lines(scene, *_END), "host")[:1])
    if found is not None:
        return sentence(f"Not all ranks met{f' at {end}' if end else ''}: {short(found.text, 140)}")
    return ""


def world_summary(scene: Scene) -> str:
    """The sentence of a wrong number of processes that a log tells of; empty where none does."""
    found = startup_failure(scene, WORLD, *_WORLD_SHOWS)
    if found is None and (twice := _announced_twice(scene)) is not None:
        return f"Each node numbers its processes from 0: {twice.says[:1].lower()}{twice.says[1:]}"
    return (
        sentence(f"The world size is not the number of processes started: {short(found.text, 160)}")
        if found is not None
        else ""
    )


def end_point(scene: Scene) -> tuple[str, str]:
    """Host and port of the rendezvous by the log; empty if it does not say."""
    met = lines(scene, *_END)
    return next(iter(captured(met, "host")), ""), next(iter(captured(met, "port")), "")


def fixes_of_start(scene: Scene) -> Fixes:
    """Fixes of a remote shell that prompts; else empty."""
    if lines(scene, "remote-shell-failed"):
        steps = (
            "ssh NODE hostname   (for each node of the hostfile)",
            "ssh-copy-id NODE; ssh-keyscan NODE >> ~/.ssh/known_hosts",
        )
        return (fix("Let the launcher log in on every node without a question", *steps),)
    return ()
