"""A GPU fell off the bus.

The driver loses a GPU: power, cable, slot or the GPU itself. Calls to it spin or fail, and its rank never comes to the next collective.

It is recognised by Xid 79 (or 46, 62, 119, 120 and 154, after which the GPU needs a reset) in the kernel log, by a device that NVML cannot ask any more, and by
"Unable to determine the device handle" or "GPU is lost".
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import said
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short, subject
from trainprobe.causes.xids import MEANS, of_cause, weigh_xids
from trainprobe.facts import Facts, Gpu
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

WORDING = r"Unable to determine the device handle|GPU is lost|fallen off the bus|NVML_ERROR_GPU_IS_LOST|GPU requires reset|GPU Reset Required"
CONTAINER = r"Failed to initialize NVML: Unknown Error"  # a container whose devices were taken away, or a driver that does not answer


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from weigh_xids(scene, CAUSE.id)
    heard, container = said(scene, WORDING, scene.world), said(scene, CONTAINER, scene.world)
    if heard is not None:
        points = 26 if "off the bus" in heard.match.group(0) or heard.origin else 13
        yield weighing(points, "suspects-log", f"The output says: {short(heard.text, 120)}", heard.fact)
    elif container is not None:
        yield weighing(6, "suspects-log", f"The driver's library cannot reach the GPU: {short(container.text, 100)}", container.fact)
    elif (unknown := next(iter(scene.events("cuda-unknown-error")), None)) is not None:
        yield weighing(6, "suspects-log", f"The driver answers with an error that has no name: {short(unknown.line, 100)}", unknown)
    silent = [gpu for gpu in facts.of(Gpu, cell=group.cell) if not gpu.uuid and gpu.memory_total_bytes is None]
    if silent:
        yield weighing(10, "gpu", f"GPU {silent[0].index} does not answer the driver's library", *silent)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    lost = of_cause(scene, CAUSE.id)
    which = f" ({lost[0].device}, Xid {lost[0].code})" if lost and lost[0].device else f" (Xid {lost[0].code})" if lost else ""
    how = "it is no longer reachable over PCIe" if not lost or lost[0].code == 79 else f"{MEANS[lost[0].code][2]}, and it is of no use until it is reset"
    return sentence(f"{subject(scene)} lost a GPU{which}: {how}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "See which GPUs are left", "nvidia-smi -L", "dmesg -T | grep -i xid"),
        fix(scene, "Take the node out of service", "scontrol update nodename=<NODE> state=drain reason='Xid 79'", risk="needs-admin", who="admin"),
    )


CAUSE = readied(
    Cause(
        id="gpu-fell-off-bus",
        title="A GPU fell off the bus",
        means="A GPU is no longer reachable over PCIe.",
        telling="Xid 79, or a device handle that cannot be determined.",
        modes=("hang", "crash", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        would_settle="dmesg -T | grep -i xid, and nvidia-smi -L",
        refines="user-exception",
        accounts_for=("rank-stuck", "illegal-memory-access", "native-crash", "rank-killed"),
        wording=WORDING,
    ),
    Signs(says=("does not see all of its GPUs", "do not see all of their GPUs"), checks=("drv.count", "drv.answer")),
)
