"""NVIDIA's driver errors by number: which illness each speaks for.

The meanings follow NVIDIA's Xid catalogue. Some codes are only the tail of another's trouble (45
ends channels after a first error, 43 a program's own end), so the first telling one decides and
later ones count little.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.causes.phrases import short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import LogEvent, Xid
from trainprobe.model.facts import Fact

# code: (cause, points alone, what NVIDIA says it means)
MEANS: dict[int, tuple[str, int, str]] = {
    8: ("gpu-kernel-hang", 13, "the GPU stopped processing"),
    13: ("illegal-memory-access", 13, "a kernel's exception"),
    31: ("illegal-memory-access", 13, "a page fault of the GPU"),
    32: ("illegal-memory-access", 6, "an invalid or corrupted push buffer"),
    43: ("illegal-memory-access", 3, "the GPU stopped a program"),
    46: ("gpu-fell-off-bus", 13, "the GPU stopped processing and needs a reset"),
    48: ("gpu-ecc-error", 26, "a double-bit memory error"),
    61: ("gpu-fell-off-bus", 6, "the GPU's own controller broke off"),
    62: ("gpu-fell-off-bus", 13, "the GPU's own controller halted"),
    63: ("gpu-ecc-error", 6, "a memory row was remapped"),
    64: ("gpu-ecc-error", 13, "a memory row could not be remapped"),
    68: ("illegal-memory-access", 3, "an exception of the video decoder"),
    69: ("illegal-memory-access", 6, "a graphics engine class error"),
    74: ("network-fault", 13, "an NVLink error"),
    79: ("gpu-fell-off-bus", 26, "the GPU fell off the bus"),
    92: ("gpu-ecc-error", 3, "many corrected memory errors"),
    94: ("gpu-ecc-error", 13, "a memory error that was contained"),
    95: ("gpu-ecc-error", 26, "a memory error that was not contained"),
    109: ("gpu-kernel-hang", 13, "a context switch timed out"),
    110: ("gpu-fell-off-bus", 13, "a security fault, after which the GPU needs a reset"),
    119: ("gpu-fell-off-bus", 13, "the GPU's system processor does not answer"),
    120: ("gpu-fell-off-bus", 13, "the GPU's system processor failed"),
    140: ("gpu-ecc-error", 13, "memory errors that were not recovered"),
    154: ("gpu-fell-off-bus", 13, "the driver wants the GPU reset or the node rebooted"),
    171: ("gpu-ecc-error", 6, "details of a memory error"),
    172: ("gpu-ecc-error", 6, "details of a memory error"),
}
TELLING = 10  # points from which a code can begin a story


@dataclass(frozen=True)
class Seen:
    """One such line, of the kernel log or of a log that repeats it."""

    code: int
    device: str
    text: str
    order: float
    fact: Fact


def seen(scene: Scene) -> tuple[Seen, ...]:
    """All of them, earliest first, each code of a device once."""
    found = [
        Seen(xid.code, xid.device, xid.text, xid.at if xid.at is not None else 0.0, xid)
        for xid in scene.facts.of(Xid)
    ]
    for event in scene.of(LogEvent):
        code = next(
            (
                event.captured[name]
                for name in ("code", "critical", "said")
                if event.captured.get(name, "").isdecimal()
            ),
            "",
        )
        if event.event == "xid" and code:
            order = event.at if event.at is not None else float(event.place or 0)
            found.append(
                Seen(int(code), event.captured.get("device", ""), event.line, order, event)
            )
    once: dict[tuple[int, str], Seen] = {}
    for one in sorted(found, key=lambda one: one.order):
        once.setdefault((one.code, one.device), one)
    return tuple(once.values())


def of_cause(scene: Scene, cause_id: str) -> tuple[Seen, ...]:
    """Those that speak for this cause, the strongest first."""
    mine = [one for one in seen(scene) if one.code in MEANS and MEANS[one.code][0] == cause_id]
    return tuple(sorted(mine, key=lambda one: -MEANS[one.code][1]))


def weigh_xids(scene: Scene, cause_id: str) -> Weighings:
    """Weigh the cause's strongest code; few points if another cause's code came first."""
    mine = of_cause(scene, cause_id)
    if not mine:
        return
    best = mine[0]
    points = MEANS[best.code][1]
    before = [
        one
        for one in seen(scene)
        if one.device == best.device
        and one.order < min(mine, key=lambda each: each.order).order
        and one.code in MEANS
        and MEANS[one.code][1] >= TELLING
    ]
    if before:
        points = min(points, 6)
    says = f"Xid {best.code} of GPU {best.device or '?'}, {MEANS[best.code][2]}"
    says = f"The kernel log has {says}: {short(best.text, 100)}"
    yield weighing(points, "kernel-log", says, *(one.fact for one in mine))
