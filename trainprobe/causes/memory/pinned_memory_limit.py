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
from trainprobe.causes.gpu_memory import shortage, weigh_allocator
from trainprobe.causes.phrases import fixes, size, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import confirmed, first_of, stated
from trainprobe.signatures.messages import message

WORDING = message("pinned-memory-limit")
WSL = message("pinned-memory-limit.wsl")
SMALL = 64 * 2**20


def _pinning(scene: Scene) -> Weighings:
    found = shortage(scene)
    if found is not None and found.kind == "pinned":
        where = found.why or "a call that pins"
        says = f"It ran out inside {where}, which asks for memory of the host"
        yield weighing(13, "suspects-stack", says, found.heard.fact)
        yield from weigh_allocator(scene, found, "CUDA")


def _limits(scene: Scene) -> Weighings:
    kernel, limit = scene.given("kernel"), scene.given("limit.memlock_bytes")
    if kernel is not None and re.search(WSL, kernel.value, re.IGNORECASE):
        says = f"The kernel is WSL's ({kernel.value}), which allows little pinned memory"
        yield weighing(6, "environment-and-limits", says, kernel)
    if limit is not None and limit.number is not None and limit.number <= SMALL:
        says = f"The limit of locked memory is {size(limit.number)}"
        yield weighing(3, "environment-and-limits", says, limit)


def _summary(scene: Scene) -> str:
    found, limit = shortage(scene), scene.limit("limit.memlock_bytes")
    place = f" at {found.why}" if found is not None and found.why else ""
    shown = f"; ulimit -l is {size(limit)}" if limit is not None else ""
    return (
        f"{subject(scene)} could not get page-locked memory of the host{place}; the memory of the"
        f" GPU is not full{shown}"
    )


CAUSE = Cause(
    id="pinned-memory-limit",
    title="Page-locked memory cannot be had",
    weigh=confirmed(first_of(_pinning, stated(WORDING)), _limits),
    summary=_summary,
    fixes=fixes("""
        Pin less
            DataLoader(…, pin_memory=False); Trainer: --dataloader_pin_memory False
            "pin_memory": false under offload_optimizer (DeepSpeed)
        In WSL 2, give it more memory
            [wsl2] memory=… in %UserProfile%\\.wslconfig, then wsl --shutdown
        [admin] Raise the limit of locked memory
            ulimit -l unlimited; docker run --ulimit memlock=-1
    """),
    would_settle="ulimit -l; uname -r   (and the same run with pin_memory=False)",
    refines="cuda-oom",
    accounts_for=("user-exception", "native-crash"),
    wording=WORDING,
)
