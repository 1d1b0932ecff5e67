"""Shared memory is too small for the batches that loader workers hand over.

Workers put their batches into shared memory. A container has 64 MiB of it unless told otherwise.
When it is full, the next write ends the worker with SIGBUS ("Unexpected bus error encountered in
worker"), or torch cannot resize its segment.

It is recognised by those words, by a bus error of a process, and by the host check of /dev/shm; and
it is foretold where its use grows.
"""

from __future__ import annotations

import math

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import GIB, Fixes, fix, size
from trainprobe.causes.predicted import fewer_workers, foreseen, needed, weigh_foreseen
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import (
    advice,
    checked,
    first_to_fail,
    quote_after,
    statement,
    weigh_statement,
)
from trainprobe.signatures.messages import message

WORDING = message("shm-exhausted")
CHECK = "shm.size"
# Docker gives 64 MiB; batches of images with several workers need a gibibyte and more
SMALL = 1 << 30


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_foreseen(foreseen(scene.group, "shm"))
    heard = statement(scene, WORDING)
    yield from weigh_statement(scene, WORDING, log_points=26)
    buses = [
        end
        for end in scene.endings(scene.suspects)
        if end.signal_name == "SIGBUS" and not end.by_us
    ]
    if buses:
        says = f"Rank {buses[0].rank} died of SIGBUS, as writes to full shared memory do"
        yield weighing(6, "exit-status", says, *buses)
    elif heard is not None:
        yield from first_to_fail(scene)
    given = scene.given("shm.size_bytes")
    if (
        given is not None
        and given.number is not None
        and (heard is not None or buses)
        and given.number <= SMALL
    ):
        yield weighing(
            10, "environment-and-limits", f"Shared memory holds {size(given.number)}", given
        )
    yield from checked(scene, CHECK, corroborates=heard is not None or bool(buses))
    roomy = [check for check in scene.checks(CHECK, bad_only=False) if check.status == "ok"]
    if roomy and heard is None:
        yield weighing(-6, "environment-and-limits", roomy[0].says.rstrip("."), *roomy)


def _summary(scene: Scene) -> str:
    if (one := foreseen(scene.group, "shm")) is not None:
        return f"Shared memory (/dev/shm) will be full: {one.says}"
    heard, check = statement(scene, WORDING), next(iter(scene.checks(CHECK, bad_only=False)), None)
    given = scene.given("shm.size_bytes")
    room = ""
    if check is not None:
        room = f" ({check.says.rstrip('.')})"
    elif given is not None and given.number:
        room = f" ({size(given.number)})"
    return f"Shared memory (/dev/shm) is full or too small{room}{quote_after(heard, 120)}"


def _fixes(scene: Scene) -> Fixes:
    more, one = advice(scene, CHECK), foreseen(scene.group, "shm")
    if one is not None:
        gib = max(1, math.ceil(needed(one) / GIB))
        more = (
            f"docker run --shm-size={gib}g …   or --ipc=host",
            f"mount -o remount,size={gib}G /dev/shm   (on a host of your own)",
        )
    return (
        *(fewer_workers(scene, one) if one is not None else ()),
        fix(
            "Give the container more shared memory",
            *(more or ("docker run --shm-size=8g …   or --ipc=host",)),
            verify="df -h /dev/shm",
        ),
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
