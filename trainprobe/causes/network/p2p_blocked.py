"""Direct traffic between GPUs is blocked.

PCIe access control (ACS) or the IOMMU sends traffic between GPUs astray. The communicator comes up,
and its first operation spins for ever with the GPUs in full use.

It is recognised by all ranks of one host in their first collective with all GPUs fully used at
little power, and by a check of the host that finds ACS or IOMMU translation on. In logs: CUDA or
NCCL refuse peer access, or all channels go over P2P, the set-up completes and the first collective
never ends. Collectives that have ended before rule it out.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import fixes, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.startup_failures import (
    failed_of_something_else,
    lines,
    startup_failure,
    weigh_general,
    weigh_startup_failure,
)
from trainprobe.facts import CollectiveCall, Gpu, LogEvent
from trainprobe.signatures.messages import message
from trainprobe.waits.standings import IN_COLLECTIVE

FIRST = 2  # numbers of collectives that are still the set-up's
WORDING = message("p2p-blocked")
LITTLE = 0.5  # of the power limit: a spinning kernel burns little


def _weigh(scene: Scene) -> Weighings:
    found = startup_failure(scene, WORDING, "p2p-refused")
    yield from weigh_startup_failure(scene, found)
    if found is None:
        yield from weigh_general(
            scene,
            r"unhandled cuda error|ncclUnhandledCudaError",
            "a call of CUDA failed, as peer access does",
        )
    yield from _spins(scene)
    waiting = [thread for thread in scene.threads(scene.world) if thread.leaf in IN_COLLECTIVE]
    used = [gpu for gpu in scene.of(Gpu) if gpu.processes and gpu.busy]
    done = [call for call in scene.of(CollectiveCall) if call.finished]
    if done:
        says = f"Rank {done[0].rank} has finished collectives before ({done[0].op})"
        yield weighing(-26, "flight-recorder", says, done[0])
        return
    if len(used) > 1 and waiting and len(waiting) == len(scene.world):
        spinning = [
            gpu
            for gpu in used
            if gpu.power_w is not None
            and gpu.power_limit_w
            and gpu.power_w < LITTLE * gpu.power_limit_w
        ]
        points = 10 if len(spinning) == len(used) else 3
        says = (
            f"All {len(used)} GPUs of the job are fully"
            f" used{' at little power' if spinning else ''} while nobody gets on"
        )
        yield weighing(points, "gpu", says, *used)
        first = [call for call in scene.of(CollectiveCall) if call.number in (0, 1)]
        if first:
            says = f"It is the first collective of its group ({first[0].op})"
            yield weighing(6, "flight-recorder", says, *first[:1])
    bad = scene.checks("p2p", "acs", "iommu")
    if bad:
        yield weighing(13, "environment-and-limits", bad[0].says.rstrip("."), *bad)


def _spins(scene: Scene) -> Weighings:
    """The first collective over direct channels that nobody leaves, as a log tells it."""
    if failed_of_something_else(scene) or scene.group.how in (
        "never-joined",
        "not-visible",
        "left",
    ):
        return
    channels = lines(scene, "p2p-channel")
    timeouts = lines(scene, "collective-timeout")
    acs = lines(scene, "acs-on")
    first = [
        event
        for event in timeouts
        if event.captured.get("seq", "").isdecimal() and int(event.captured["seq"]) <= FIRST
    ]
    if channels and first and len(first) == len(timeouts) and lines(scene, "nccl-init-complete"):
        says = (
            "The channels go over direct peer access, the set-up completed, and the first"
            f" collective did not: {short(first[0].line, 120)}"
        )
        yield weighing(13, "suspects-log", says, first[0], channels[0])
    elif first and len(first) == len(timeouts) and (never := _never_completed(scene)) is not None:
        says = f"No collective was ever completed: {short(never.line, 120)}"
        yield weighing(6, "suspects-log", says, never)
    if acs:
        says = f"Traffic between GPUs is sent astray: {short(acs[0].line, 120)}"
        yield weighing(13, "environment-and-limits", says, acs[0])


def _never_completed(scene: Scene) -> LogEvent | None:
    """A watchdog's word that its rank had not completed a collective yet."""
    last = lines(scene, "nccl-last-work")
    none = [event for event in last if event.captured.get("completed") in ("-1", "0")]
    return none[0] if none and len(none) == len(last) else None


def _summary(scene: Scene) -> str:
    found = startup_failure(scene, WORDING, "p2p-refused")
    if found is not None:
        return f"The GPUs cannot reach each other directly: {short(found.text, 160)}"
    return (
        f"The first operation of {len(scene.world)} ranks spins on all GPUs: direct traffic between"
        " them does not arrive"
    )


CAUSE = Cause(
    id="p2p-blocked",
    title="Direct traffic between GPUs is blocked",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        See whether it works without direct traffic
            NCCL_P2P_DISABLE=1 torchrun ...   (a test, and a slow bridge; on GeForce RTX 40 and 50
                the right setting)
        [admin] Look for ACS and the IOMMU
            lspci -vvv | grep -i ACSCtl   (SrcValid+ means on)
            dmesg | grep -i -E 'iommu|dmar'
    """),
    would_settle="run once with NCCL_P2P_DISABLE=1",
    ranks=nobody,
    accounts_for=("user-exception",),
    wording=WORDING,
    ready=ReadySigns(
        says=("has GPUs without all of their links", "have GPUs without all of their links"),
        checks=("drv.nvlink",),
    ),
)
