"""A GPU fell off the bus.

The driver loses a GPU: power, cable, slot or the GPU itself. Calls to it spin or fail, and its rank
never comes to the next collective.

It is recognised by Xid 79 (or 46, 62, 119, 120 and 154, after which the GPU needs a reset) in the
kernel log, by a device that NVML cannot ask any more, and by
"Unable to determine the device handle" or "GPU is lost".
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.phrases import fixes, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import all_of, first_of, printed
from trainprobe.causes.statements import quote, statement
from trainprobe.causes.xids import MEANS, of_cause, weigh_xids
from trainprobe.facts import Gpu
from trainprobe.signatures.messages import message

WORDING = message("gpu-fell-off-bus")
CONTAINER = message("gpu-fell-off-bus.container")


def _logged(scene: Scene) -> Weighings:
    yield from weigh_xids(scene, CAUSE.id)


def _stated(scene: Scene) -> Weighings:
    found = statement(scene, WORDING, scene.world)
    container = statement(scene, CONTAINER, scene.world)
    if found is not None:
        points = 26 if "off the bus" in found.match.group(0) or found.origin else 13
        yield quote(points, "The output says", found)
    elif container is not None:
        yield quote(6, "The driver's library cannot reach the GPU", container)


def _silent(scene: Scene) -> Weighings:
    silent = [gpu for gpu in scene.of(Gpu) if not gpu.uuid and gpu.memory_total_bytes is None]
    if silent:
        says = f"GPU {silent[0].index} does not answer the driver's library"
        yield weighing(10, "gpu", says, *silent)


def _summary(scene: Scene) -> str:
    which, how = "", "it is no longer reachable over PCIe"
    for xid in of_cause(scene, CAUSE.id)[:1]:
        which = f" ({xid.device}, Xid {xid.code})" if xid.device else f" (Xid {xid.code})"
        if xid.code != 79:
            how = f"{MEANS[xid.code][2]}, and it is of no use until it is reset"
    return f"{subject(scene)} lost a GPU{which}: {how}"


CAUSE = Cause(
    id="gpu-fell-off-bus",
    title="A GPU fell off the bus",
    modes=("hang", "crash", "check"),
    weigh=all_of(
        _logged,
        first_of(
            _stated,
            printed(6, "The driver answers with an error without a name", "cuda-unknown-error"),
        ),
        _silent,
    ),
    summary=_summary,
    fixes=fixes("""
        See which GPUs are left
            nvidia-smi -L
            dmesg -T | grep -i xid
        [admin] Take the node out of service
            scontrol update nodename=<NODE> state=drain reason='Xid 79'
    """),
    would_settle="dmesg -T | grep -i xid, and nvidia-smi -L",
    refines="user-exception",
    accounts_for=("rank-stuck", "illegal-memory-access", "native-crash", "rank-killed"),
    wording=WORDING,
    ready=ReadySigns(
        says=("does not see all of its GPUs", "do not see all of their GPUs"),
        checks=("drv.count", "drv.answer"),
    ),
)
