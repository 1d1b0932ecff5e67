"""A GPU fell off the bus.

The driver loses a GPU: power, cable, slot or the GPU itself. Calls to it spin or fail, and its rank never comes to the next collective.

It is recognised by Xid 79 (or 119, 120 and 154, after which the GPU needs a reset) in the kernel log, by a device that NVML cannot ask any more, and by CUDA's
"Unable to determine the device handle".
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import said
from trainprobe.causes.words import fix, sentence, short, subject
from trainprobe.facts import Facts, Gpu, Xid
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

LOST = frozenset({79, 119, 120, 154})  # NVIDIA's Xid catalogue: fallen off the bus, GSP time-outs, reset needed
WORDING = r"Unable to determine the device handle|GPU is lost|has fallen off the bus"


def _lost(facts: Facts) -> tuple[Xid, ...]:
    return tuple(xid for xid in facts.of(Xid) if xid.code in LOST)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    lost = _lost(facts)
    if lost:
        points = 26 if lost[0].code == 79 else 13
        yield weighing(points, "kernel-log", f"The kernel log has Xid {lost[0].code} of GPU {lost[0].device}: {short(lost[0].text, 100)}", *lost)
    heard = said(scene, WORDING, scene.world)
    if heard is not None:
        yield weighing(13, "suspects-log", f"The output says: {short(heard.text, 120)}", heard.fact)
    silent = [gpu for gpu in facts.of(Gpu, cell=group.cell) if not gpu.uuid and gpu.memory_total_bytes is None]
    if silent:
        yield weighing(10, "gpu", f"GPU {silent[0].index} does not answer the driver's library", *silent)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    lost = _lost(facts)
    return sentence(
        f"{subject(Scene(facts, group))} lost a GPU{f' ({lost[0].device}, Xid {lost[0].code})' if lost else ''}: it is no longer reachable over PCIe"
    )


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "See which GPUs are left", "nvidia-smi -L", "dmesg -T | grep -i xid"),
        fix(scene, "Take the node out of service", "scontrol update nodename=NODE state=drain reason='Xid 79'", risk="needs-admin", who="admin"),
    )


CAUSE = Cause(
    id="gpu-fell-off-bus",
    title="A GPU fell off the bus",
    means="A GPU is no longer reachable over PCIe.",
    telling="Xid 79, or a device handle that cannot be determined.",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="dmesg -T | grep -i xid, and nvidia-smi -L",
    accounts_for=("rank-stuck",),
    wording=WORDING,
)
