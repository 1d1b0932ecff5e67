"""Direct traffic between GPUs is blocked.

PCIe access control (ACS) or the IOMMU sends traffic between GPUs astray. The communicator comes up, and its first operation spins for ever with the GPUs in full use.

It is recognised by all ranks of one host in their first collective with all GPUs fully used at little power, and by a check of the host that finds ACS or IOMMU
translation on. In logs: CUDA or NCCL refuse peer access, or all channels go over P2P, the set-up completes and the first collective never ends. Collectives that have ended before rule it out.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.told import failed_of_something_else, lines, told, weigh_general, weigh_told
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import CollectiveCall, Facts, Gpu
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

BUSY = 95.0
FIRST = 2  # numbers of collectives that are still the set-up's
# NCCL's graph/paths.cc and transport/p2p.cc, CUDA error 217, accelerate's state.py.
WORDING = (
    r"P2P is disabled between NVLINK|failed to peer with device|Could not enable P2P|peer access is not supported between|communication broadband via P2P or IB"
)
LITTLE = 0.5  # of the power limit: a spinning kernel burns little


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = told(scene, WORDING, "p2p-refused")
    yield from weigh_told(scene, heard)
    if heard is None:
        yield from weigh_general(scene, r"unhandled cuda error|ncclUnhandledCudaError", "a call of CUDA failed, as peer access does")
    yield from _spins(scene)
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


def _spins(scene: Scene) -> Iterator[Weighing]:
    """The first collective over direct channels that nobody leaves, as a log tells it."""
    if failed_of_something_else(scene) or scene.group.how in ("never-joined", "not-visible", "left"):
        return
    channels, timeouts, acs = lines(scene, "p2p-channel"), lines(scene, "collective-timeout"), lines(scene, "acs-on")
    first = [event for event in timeouts if event.captured.get("seq", "").isdigit() and int(event.captured["seq"]) <= FIRST]
    if channels and first and len(first) == len(timeouts) and lines(scene, "nccl-init-complete"):
        says = f"The channels go over direct peer access, the set-up completed, and the first collective did not: {short(first[0].line, 120)}"
        yield weighing(13, "suspects-log", says, first[0], channels[0])
    if acs:
        yield weighing(13, "environment-and-limits", f"Traffic between GPUs is sent astray: {short(acs[0].line, 120)}", acs[0])


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard = told(scene, WORDING, "p2p-refused")
    if heard is not None:
        return sentence(f"The GPUs cannot reach each other directly: {short(heard.text, 160)}")
    return sentence(f"The first operation of {len(scene.world)} ranks spins on all GPUs: direct traffic between them does not arrive")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(
            scene,
            "See whether it works without direct traffic",
            "NCCL_P2P_DISABLE=1 torchrun ...   (a test, and a slow bridge; on GeForce RTX 40 and 50 the right setting)",
        ),
        fix(
            scene,
            "Look for ACS and the IOMMU",
            "lspci -vvv | grep -i ACSCtl   (SrcValid+ means on)",
            "dmesg | grep -i -E 'iommu|dmar'",
            who="admin",
            risk="needs-admin",
        ),
    )


CAUSE = readied(
    Cause(
        id="p2p-blocked",
        title="Direct traffic between GPUs is blocked",
        means="Direct traffic between GPUs over PCIe is broken by ACS or the IOMMU.",
        telling="Set-up succeeds and the first operation spins at full use; it works with P2P disabled.",
        modes=("hang", "crash"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        would_settle="run once with NCCL_P2P_DISABLE=1",
        ranks=nobody,
        accounts_for=("user-exception",),
        wording=WORDING,
    ),
    Signs(says=("has GPUs without all of their links", "have GPUs without all of their links"), checks=("drv.nvlink",)),
)
