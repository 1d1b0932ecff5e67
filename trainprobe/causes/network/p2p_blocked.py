"""Direct traffic between GPUs is blocked.

PCIe access control (ACS) or the IOMMU sends traffic between GPUs astray. The communicator comes up, and its first operation spins for ever with the GPUs in full use.

It is recognised by all ranks of one host in their first collective with all GPUs fully used at little power, and by a check of the host that finds ACS or IOMMU
translation on. Collectives that have ended before rule it out.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.words import fix, sentence
from trainprobe.facts import CollectiveCall, Facts, Gpu
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

BUSY = 95.0
LITTLE = 0.5  # of the power limit: a spinning kernel burns little


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    waiting = [thread for thread in scene.threads(scene.world) if thread.leaf in ("gpu-wait", "comm-wait")]
    used = [gpu for gpu in facts.of(Gpu, cell=group.cell) if gpu.processes and (gpu.utilization_percent or 0) >= BUSY]
    done = [call for call in facts.of(CollectiveCall, cell=group.cell) if call.finished]
    if done:
        yield weighing(-26, "flight-recorder", f"Rank {done[0].rank} has finished collectives before ({done[0].op})", done[0])
        return
    if len(used) > 1 and waiting and len(waiting) == len(scene.world):
        spinning = [gpu for gpu in used if gpu.power_w is not None and gpu.power_limit_w and gpu.power_w < LITTLE * gpu.power_limit_w]
        points = 10 if len(spinning) == len(used) else 3
        yield weighing(points, "gpu", f"All {len(used)} GPUs of the job are fully used{' at little power' if spinning else ''} while nobody gets on", *used)
        first = [call for call in facts.of(CollectiveCall, cell=group.cell) if call.number in (0, 1)]
        if first:
            yield weighing(6, "flight-recorder", f"It is the first collective of its group ({first[0].op})", *first[:1])
    bad = scene.checks("p2p", "acs", "iommu")
    if bad:
        yield weighing(13, "environment-and-limits", bad[0].says.rstrip("."), *bad)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    return sentence(f"The first operation of {len(scene.world)} ranks spins on all GPUs: direct traffic between them does not arrive")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "See whether it works without direct traffic", "NCCL_P2P_DISABLE=1 torchrun ...   (a test, and a slow bridge)"),
        fix(
            scene,
            "Look for ACS and the IOMMU",
            "lspci -vvv | grep -i ACSCtl   (SrcValid+ means on)",
            "dmesg | grep -i -E 'iommu|dmar'",
            who="admin",
            risk="needs-admin",
        ),
    )


CAUSE = Cause(
    id="p2p-blocked",
    title="Direct traffic between GPUs is blocked",
    means="Direct traffic between GPUs over PCIe is broken by ACS or the IOMMU.",
    telling="Set-up succeeds and the first operation spins at full use; it works with P2P disabled.",
    modes=("hang",),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="run once with NCCL_P2P_DISABLE=1",
    ranks=nobody,
)
