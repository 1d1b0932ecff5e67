"""More ranks on a node than GPUs that they can see.

LOCAL_RANK counts up to the number of ranks on the node. When fewer GPUs are visible (CUDA_VISIBLE_DEVICES, a scheduler that gives one per task),
`torch.cuda.set_device(local_rank)` fails with "invalid device ordinal".

It is recognised by those words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.told import captured, lines, told, weigh_told
from trainprobe.causes.words import fix, sentence, subject
from trainprobe.facts import Facts, Gpu
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# cudaErrorInvalidDevice, and torch's own check of a device index.
WORDING = (
    r"invalid device ordinal|Invalid device id|device >= 0 && device < num_gpus|But your machine only has|You requested (?:gpu|GPUs): ?\[|only supported with GPUs, no GPUs found"
    r"|cudaErrorInvalidDevice|exceeds the number of available GPUs|No supported gpu backend found"
    r"|No (?:CUDA|HIP) GPUs are available|no (?:CUDA|ROCm)-capable device is detected"
)
# No GPU at all may also be the driver's doing, which then says so itself.
NONE_AT_ALL = r"(?i)no (?:CUDA|HIP) GPUs|no (?:CUDA|ROCm)-capable|no GPUs found|No supported gpu backend"
SHOWS = ("invalid-device", "devices-missing", "no-gpu-visible")


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard, origin = told(scene, WORDING, *SHOWS), scene.origin
    if origin is not None and origin.type.endswith("IndexError") and any(frame.name == "root_device" for frame in origin.frames[-1:]):
        yield weighing(26, "suspects-log", "Lightning has no device for this local rank: fewer devices than ranks were started on the host", origin)
        return
    if heard is None:
        return
    none_at_all = re.search(NONE_AT_ALL, heard.text) is not None
    yield from weigh_told(scene, heard, sure=13 if none_at_all else 26, sign=13 if none_at_all else 26)
    gpus = facts.of(Gpu)
    if gpus and len(gpus) < group.world_size:
        yield weighing(10, "gpu", f"The host has {len(gpus)} GPUs for {group.world_size} ranks", *gpus)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    gpus = facts.of(Gpu)
    seen = captured(lines(scene, "devices-missing"), "seen")
    if seen and not gpus:
        return sentence(f"{subject(scene)} asks for GPUs that it cannot see: only {seen[0]} are visible")
    number = f": the host has {len(gpus)}, and {group.world_size} ranks run on it" if gpus else ""
    return sentence(f"{subject(scene)} asks for a GPU that it cannot see{number}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    gpus = facts.of(Gpu)
    return (
        fix(scene, "Start as many ranks as there are GPUs", f"torchrun --nproc-per-node {len(gpus) or 'GPUS'} …"),
        fix(scene, "See what a rank sees", "python -c 'import os, torch; print(os.environ.get(\"CUDA_VISIBLE_DEVICES\"), torch.cuda.device_count())'"),
        fix(scene, "Where the scheduler gives one GPU per task", "torch.cuda.set_device(0)   or --gpus-per-task with --gpu-bind=none"),
    )


CAUSE = Cause(
    id="invalid-device-ordinal",
    title="More ranks than visible GPUs",
    means="A rank asks for a GPU number that is not visible to it.",
    telling="invalid device ordinal at set_device.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="CUDA_VISIBLE_DEVICES and torch.cuda.device_count() inside a rank",
    refines="user-exception",
    wording=WORDING,
)
