"""The system refuses to lock more pages for pinned host memory.

Loaders that pin, and optimizers that are offloaded to the CPU, ask the driver for page-locked
memory of the host. WSL 2 allows little of it, containers and limits may as well, and the driver's
answer is CUDA's "out of memory" though the GPU has room.

It is recognised by memory that runs out inside a pinning call, without the allocator's numbers of a
GPU. A message with those numbers rules it out: pinned memory is not on the device.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.gpu_memory import shortage
from trainprobe.causes.phrases import admin_fix, fix, short, size, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, statement, weigh_statement
from trainprobe.signatures.messages import message

WORDING = message("pinned-memory-limit")
WSL = message("pinned-memory-limit.wsl")
SMALL = 64 * 2**20


def _weigh(scene: Scene) -> Weighings:
    found = shortage(scene)
    pinned = found is not None and found.kind == "pinned"
    if found is not None and pinned:
        where = found.why or "a call that pins"
        says = f"It ran out inside {where}, which asks for memory of the host"
        yield weighing(13, "suspects-stack", says, found.heard.fact)
        says = f"CUDA says: {short(found.heard.text, 120)}"
        yield weighing(26 if found.heard.origin else 13, "suspects-log", says, found.heard.fact)
        yield from first_to_fail(scene)
    elif statement(scene, WORDING) is not None:
        yield from weigh_statement(scene, WORDING)
        yield from first_to_fail(scene)
        pinned = True
    if not pinned:
        return
    kernel = scene.given("kernel")
    if kernel is not None and re.search(WSL, kernel.value, re.IGNORECASE):
        says = f"The kernel is WSL's ({kernel.value}), which allows little pinned memory"
        yield weighing(6, "environment-and-limits", says, kernel)
    limit = scene.given("limit.memlock_bytes")
    if limit is not None and limit.number is not None and limit.number <= SMALL:
        says = f"The limit of locked memory is {size(limit.number)}"
        yield weighing(3, "environment-and-limits", says, limit)


def _summary(scene: Scene) -> str:
    found = shortage(scene)
    place = f" at {found.why}" if found is not None and found.why else ""
    limit = scene.given("limit.memlock_bytes")
    has = ""
    if limit is not None and limit.number is not None:
        has = f"; ulimit -l is {size(limit.number)}"
    return (
        f"{subject(scene)} could not get page-locked memory of the host{place}, while the GPU is"
        f" not the one that is full{has}"
    )


CAUSE = Cause(
    id="pinned-memory-limit",
    title="Page-locked memory cannot be had",
    weigh=_weigh,
    summary=_summary,
    fixes=(
        fix(
            "Pin less",
            "DataLoader(…, pin_memory=False); Trainer: --dataloader_pin_memory False",
            '"pin_memory": false under offload_optimizer (DeepSpeed)',
        ),
        fix(
            "In WSL 2, give it more memory",
            "[wsl2] memory=… in %UserProfile%\\.wslconfig, then wsl --shutdown",
        ),
        admin_fix(
            "Raise the limit of locked memory",
            "ulimit -l unlimited; docker run --ulimit memlock=-1",
        ),
    ),
    would_settle="the same run with pin_memory=False; ulimit -l; uname -r",
    refines="cuda-oom",
    accounts_for=("user-exception", "native-crash"),
    wording=WORDING,
)
