"""More ranks on a node than GPUs that they can see.

LOCAL_RANK counts up to the number of ranks on the node. When fewer GPUs are visible
(CUDA_VISIBLE_DEVICES, a scheduler that gives one per task),
`torch.cuda.set_device(local_rank)` fails with "invalid device ordinal".

It is recognised by those words.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import fixes, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import first_of
from trainprobe.causes.startup_failures import (
    captured,
    lines,
    startup_failure,
    weigh_startup_failure,
)
from trainprobe.facts import Gpu
from trainprobe.signatures.messages import message

WORDING = message("invalid-device-ordinal")
NONE_AT_ALL = message("invalid-device-ordinal.none-at-all")
SHOWS = ("invalid-device", "devices-missing", "no-gpu-visible")
FIXES = """
Start as many ranks as there are GPUs
    torchrun --nproc-per-node {gpus} …
See what a rank sees
    python -c 'import os, torch; print(os.environ.get("CUDA_VISIBLE_DEVICES"),
        torch.cuda.device_count())'
Where the scheduler gives one GPU per task
    torch.cuda.set_device(0)   or --gpus-per-task with --gpu-bind=none
"""


def _lightning(scene: Scene) -> Weighings:
    origin = scene.origin
    if origin is None or not origin.type.endswith("IndexError"):
        return
    if any(frame.name == "root_device" for frame in origin.frames[-1:]):
        says = "Lightning has no device for this local rank: the host has fewer than ranks"
        yield weighing(26, "suspects-log", says, origin)


def _refused(scene: Scene) -> Weighings:
    found, gpus = startup_failure(scene, WORDING, *SHOWS), scene.facts.of(Gpu)
    if found is None:
        return
    points = 13 if re.search(NONE_AT_ALL, found.text) else 26
    yield from weigh_startup_failure(scene, found, sure=points, sign=points)
    if gpus and len(gpus) < scene.group.world_size:
        says = f"The host has {len(gpus)} GPUs for {scene.group.world_size} ranks"
        yield weighing(10, "gpu", says, *gpus)


def _summary(scene: Scene) -> str:
    gpus, visible = scene.facts.of(Gpu), captured(lines(scene, "devices-missing"), "seen")
    if visible and not gpus:
        return f"{subject(scene)} asks for GPUs that it cannot see: only {visible[0]} are visible"
    number = ""
    if gpus:
        number = f": the host has {len(gpus)}, and {scene.group.world_size} ranks run on it"
    return f"{subject(scene)} asks for a GPU that it cannot see{number}"


CAUSE = Cause(
    id="invalid-device-ordinal",
    title="More ranks than visible GPUs",
    weigh=first_of(_lightning, _refused),
    summary=_summary,
    fixes=lambda scene: fixes(FIXES, gpus=len(scene.facts.of(Gpu)) or "GPUS"),
    ranks=nobody,
    would_settle="CUDA_VISIBLE_DEVICES and torch.cuda.device_count() inside a rank",
    refines="user-exception",
    wording=WORDING,
)
