"""Shared memory is too small for the batches that loader workers hand over.

Workers put their batches into shared memory. A container has 64 MiB of it unless told otherwise.
When it is full, the next write ends the worker with SIGBUS ("Unexpected bus error encountered in
worker"), or torch cannot resize its segment.

It is recognised by those words, by a bus error of a process, and by the host check of /dev/shm; and
it is foretold where its use grows.
"""

from __future__ import annotations

import math
import re

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import GIB, Fixes, fix, size
from trainprobe.causes.predicted import fewer_workers, foreseen, needed, weigh_foreseen
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import passed_check
from trainprobe.causes.statements import (
    advice,
    checked,
    first_to_fail,
    quote_after,
    statement,
    weigh_statement,
)
from trainprobe.facts import RankException
from trainprobe.signatures.messages import message

WORDING = message("shm-exhausted")
CHECK = "shm.size"
# Docker gives 64 MiB; batches of images with several workers need a gibibyte and more
SMALL = 1 << 30
_NO_SPACE = re.compile(r"\[Errno 28\]|No space left")
_IN_MEMORY = re.compile(
    r"(?:torch/)?multiproces\w{1,4}/(?:synchronize|heap|shared_memory|reductions?|context)\.py$"
)
_CONTAINER = re.compile(r"[0-9a-f]{12}$")  # Docker names a host by the first digits of its id


def kept_in_memory(scene: Scene) -> RankException | None:
    """The exception of a write that found no space where only shared memory is written: locks,
    arenas and segments of `multiprocessing` are files in /dev/shm.
    """
    return next(
        (
            raised
            for raised in scene.exceptions(scene.world)
            if _NO_SPACE.search(raised.message)
            and any(_IN_MEMORY.search(frame.file) for frame in raised.frames[-4:])
        ),
        None,
    )


def _bus_errors(scene: Scene) -> Weighings:
    ends = scene.endings(scene.suspects)
    buses = [end for end in ends if end.signal_name == "SIGBUS" and not end.by_us]
    if buses:
        says = f"Rank {buses[0].rank} died of SIGBUS, as writes to full shared memory do"
        yield weighing(6, "exit-status", says, *buses)
        if len(buses) > 1 and all(_CONTAINER.match(end.host) for end in buses):
            says = (
                f"{buses[0].host} is such a name as Docker gives a container, which has 64 MiB of"
                " shared memory unless told otherwise"
            )
            yield weighing(10, "environment-and-limits", says, *buses)


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_foreseen(foreseen(scene.group, "shm"))
    found, buses = tuple(weigh_statement(scene, WORDING, log_points=26)), tuple(_bus_errors(scene))
    yield from (*found, *buses)
    if (raised := kept_in_memory(scene)) is not None:
        says = f"What found no space is kept in shared memory: {raised.frames[-1].where}"
        yield weighing(26 if raised is scene.origin else 13, "suspects-stack", says, raised)
    if found and not buses:
        yield from first_to_fail(scene)
    given = scene.given("shm.size_bytes")
    if (found or buses) and given is not None and given.number and given.number <= SMALL:
        says = f"Shared memory holds {size(given.number)}"
        yield weighing(10, "environment-and-limits", says, given)
    yield from checked(scene, CHECK, corroborates=bool(found or buses))
    if not found:
        yield from passed_check(-6, CHECK)(scene)


def _summary(scene: Scene) -> str:
    if (prediction := foreseen(scene.group, "shm")) is not None:
        return f"Shared memory (/dev/shm) will be full: {prediction.says}"
    check = next(iter(scene.checks(CHECK, bad_only=False)), None)
    room = check.says.rstrip(".") if check is not None else ""
    if check is None and (limit := scene.limit("shm.size_bytes")):
        room = size(limit)
    found = statement(scene, WORDING)
    return (
        f"Shared memory (/dev/shm) is full or too small{f' ({room})' if room else ''}"
        f"{quote_after(found, 120)}"
    )


def _fixes(scene: Scene) -> Fixes:
    prediction = foreseen(scene.group, "shm")
    more = advice(scene, CHECK) or ("docker run --shm-size=8g …   or --ipc=host",)
    if prediction is not None:
        gib = max(1, math.ceil(needed(prediction) / GIB))
        more = (
            f"docker run --shm-size={gib}g …   or --ipc=host",
            f"mount -o remount,size={gib}G /dev/shm   (on a host of your own)",
        )
    return (
        *(fewer_workers(scene, prediction) if prediction is not None else ()),
        fix("Give the container more shared memory", *more, verify="df -h /dev/shm"),
        fix(
            "Or need less of it",
            "fewer workers, a smaller prefetch_factor, smaller batches",
            "num_workers=0 to see that it is this",
        ),
    )


CAUSE = Cause(
    id="shm-exhausted",
    title="Shared memory is too small",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="df -h /dev/shm while the workers run",
    refines="user-exception",
    wording=WORDING,
    ready=ReadySigns(
        says=("has too little shared memory", "have too little shared memory"),
        checks=("shm.size", "shm.alloc", "shm.stale"),
        values=("shm.",),
    ),
)
