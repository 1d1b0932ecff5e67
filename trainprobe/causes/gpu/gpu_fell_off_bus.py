"""A GPU fell off the bus.

The driver loses a GPU: power, cable, slot or the GPU itself. Calls to it spin or fail, and its rank
never comes to the next collective.

It is recognised by Xid 79 (or 46, 62, 119, 120 and 154, after which the GPU needs a reset) in the
kernel log, by a device that NVML cannot ask any more, and by
"Unable to determine the device handle" or "GPU is lost".
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.phrases import admin_fix, fix, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import quote, statement
from trainprobe.causes.xids import MEANS, of_cause, weigh_xids
from trainprobe.facts import Gpu
from trainprobe.signatures.messages import message

WORDING = message("gpu-fell-off-bus")
CONTAINER = message("gpu-fell-off-bus.container")


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_xids(scene, CAUSE.id)
    heard = statement(scene, WORDING, scene.world)
    container = statement(scene, CONTAINER, scene.world)
    if heard is not None:
        points = 26 if "off the bus" in heard.match.group(0) or heard.origin else 13
        yield quote(points, "The output says", heard)
    elif container is not None:
        yield quote(6, "The driver's library cannot reach the GPU", container)
    elif (unknown := next(iter(scene.events("cuda-unknown-error")), None)) is not None:
        yield quote(6, "The driver answers with an error that has no name", unknown)
    silent = [gpu for gpu in scene.of(Gpu) if not gpu.uuid and gpu.memory_total_bytes is None]
    if silent:
        yield weighing(
            10, "gpu", f"GPU {silent[0].index} does not answer the driver's library", *silent
        )


def _summary(scene: Scene) -> str:
    lost = of_cause(scene, CAUSE.id)
    which = ""
    if lost and lost[0].device:
        which = f" ({lost[0].device}, Xid {lost[0].code})"
    elif lost:
        which = f" (Xid {lost[0].code})"
    how = (
        "it is no longer reachable over PCIe"
        if not lost or lost[0].code == 79
        else f"{MEANS[lost[0].code][2]}, and it is of no use until it is reset"
    )
    return f"{subject(scene)} lost a GPU{which}: {how}"


CAUSE = Cause(
    id="gpu-fell-off-bus",
    title="A GPU fell off the bus",
    modes=("hang", "crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=(
        fix("See which GPUs are left", "nvidia-smi -L", "dmesg -T | grep -i xid"),
        admin_fix(
            "Take the node out of service",
            "scontrol update nodename=<NODE> state=drain reason='Xid 79'",
        ),
    ),
    would_settle="dmesg -T | grep -i xid, and nvidia-smi -L",
    refines="user-exception",
    accounts_for=("rank-stuck", "illegal-memory-access", "native-crash", "rank-killed"),
    wording=WORDING,
    ready=ReadySigns(
        says=("does not see all of its GPUs", "do not see all of their GPUs"),
        checks=("drv.count", "drv.answer"),
    ),
)
