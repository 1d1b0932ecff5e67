"""More ranks on a node than GPUs that they can see.

LOCAL_RANK counts up to the number of ranks on the node. When fewer GPUs are visible
(CUDA_VISIBLE_DEVICES, a scheduler that gives one per task),
`torch.cuda.set_device(local_rank)` fails with "invalid device ordinal".

It is recognised by those words.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import Fixes, fix, fixes, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
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


def _weigh(scene: Scene) -> Weighings:
    heard, origin = startup_failure(scene, WORDING, *SHOWS), scene.origin
    if (
        origin is not None
        and origin.type.endswith("IndexError")
        and any(frame.name == "root_device" for frame in origin.frames[-1:])
    ):
        says = (
            "Lightning has no device for this local rank: fewer devices than ranks were started on"
            " the host"
        )
        yield weighing(26, "suspects-log", says, origin)
        return
    if heard is None:
        return
    none_at_all = re.search(NONE_AT_ALL, heard.text) is not None
    yield from weigh_startup_failure(
        scene, heard, sure=13 if none_at_all else 26, sign=13 if none_at_all else 26
    )
    gpus = scene.facts.of(Gpu)
    if gpus and len(gpus) < scene.group.world_size:
        yield weighing(
            10, "gpu", f"The host has {len(gpus)} GPUs for {scene.group.world_size} ranks", *gpus
        )


def _summary(scene: Scene) -> str:
    gpus = scene.facts.of(Gpu)
    seen = captured(lines(scene, "devices-missing"), "seen")
    if seen and not gpus:
        return f"{subject(scene)} asks for GPUs that it cannot see: only {seen[0]} are visible"
    number = (
        f": the host has {len(gpus)}, and {scene.group.world_size} ranks run on it" if gpus else ""
    )
    return f"{subject(scene)} asks for a GPU that it cannot see{number}"


def _fixes(scene: Scene) -> Fixes:
    gpus = scene.facts.of(Gpu)
    return (
        fix(
            "Start as many ranks as there are GPUs",
            f"torchrun --nproc-per-node {len(gpus) or 'GPUS'} …",
        ),
        *fixes("""
            See what a rank sees
                python -c 'import os, torch; print(os.environ.get("CUDA_VISIBLE_DEVICES"),
                    torch.cuda.device_count())'
            Where the scheduler gives one GPU per task
                torch.cuda.set_device(0)   or --gpus-per-task with --gpu-bind=none
        """),
    )


CAUSE = Cause(
    id="invalid-device-ordinal",
    title="More ranks than visible GPUs",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="CUDA_VISIBLE_DEVICES and torch.cuda.device_count() inside a rank",
    refines="user-exception",
    wording=WORDING,
)
