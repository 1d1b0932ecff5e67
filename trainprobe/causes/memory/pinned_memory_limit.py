"""The system refuses to lock more pages for pinned host memory.

Loaders that pin, and optimizers that are offloaded to the CPU, ask the driver for page-locked memory of the host. WSL 2 allows little of it,
containers and limits may as well, and the driver's answer is CUDA's "out of memory" though the GPU has room.

It is recognised by memory that runs out inside a pinning call, without the allocator's numbers of a GPU. A message with those numbers rules it
out: pinned memory is not on the device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.gpu_memory import shortage
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short, size, subject
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# Those that say it outright. CUDA's own words need the place.
WORDING = (
    r"(?i:(?:could not|cannot|can't|failed to|unable to) (?:allocate|register|pin)[^\n]{0,40}pinned)"
    r"|(?:cudaHostAlloc|cudaHostRegister|hipHostMalloc)[^\n]{0,80}(?:out of memory|failed|cudaErrorMemoryAllocation)"
)
WSL = r"microsoft-standard-WSL|\bWSL2?\b"
SMALL = 64 * 2**20


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    found = shortage(scene)
    pinned = found is not None and found.kind == "pinned"
    if found is not None and pinned:
        where = found.why or "a call that pins"
        yield weighing(13, "suspects-stack", f"It ran out inside {where}, which asks for memory of the host", found.heard.fact)
        yield weighing(26 if found.heard.origin else 13, "suspects-log", f"CUDA says: {short(found.heard.text, 120)}", found.heard.fact)
        yield from first_to_fail(scene)
    elif said(scene, WORDING) is not None:
        yield from spoken(scene, WORDING)
        yield from first_to_fail(scene)
        pinned = True
    if not pinned:
        return
    kernel = scene.given("kernel")
    if kernel is not None and re.search(WSL, kernel.value, re.IGNORECASE):
        yield weighing(6, "environment-and-limits", f"The kernel is WSL's ({kernel.value}), which allows little pinned memory", kernel)
    limit = scene.given("limit.memlock_bytes")
    if limit is not None and limit.number is not None and limit.number <= SMALL:
        yield weighing(3, "environment-and-limits", f"The limit of locked memory is {size(limit.number)}", limit)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    found = shortage(scene)
    place = f" at {found.why}" if found is not None and found.why else ""
    limit = scene.given("limit.memlock_bytes")
    has = f"; ulimit -l is {size(limit.number)}" if limit is not None and limit.number is not None else ""
    return sentence(f"{subject(scene)} could not get page-locked memory of the host{place}, while the GPU is not the one that is full{has}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(
            scene,
            "Pin less",
            "DataLoader(…, pin_memory=False); Trainer: --dataloader_pin_memory False",
            '"pin_memory": false under offload_optimizer (DeepSpeed)',
        ),
        fix(scene, "In WSL 2, give it more memory", "[wsl2] memory=… in %UserProfile%\\.wslconfig, then wsl --shutdown"),
        fix(scene, "Raise the limit of locked memory", "ulimit -l unlimited; docker run --ulimit memlock=-1", risk="needs-admin", who="admin"),
    )


CAUSE = Cause(
    id="pinned-memory-limit",
    title="Page-locked memory cannot be had",
    means="The system refuses to lock more pages for pinned host memory.",
    telling="CUDA says out of memory inside pin_memory while the GPUs have room.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="the same run with pin_memory=False; ulimit -l; uname -r",
    refines="cuda-oom",
    accounts_for=("user-exception", "native-crash"),
    wording=WORDING,
)
