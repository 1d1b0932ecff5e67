"""A GPU's clocks are held down.

Heat, a power cap or the hardware's own protection lowers a GPU's clocks. Its rank computes slowly,
and every step waits for it.

It is recognised by the reasons that the driver gives for low clocks while the GPU is in use, and by
a clock far below that of the node's other GPUs. A power cap that all GPUs share is normal under
load. A GPU that is not used rules it out. In a log only the driver's own table of reasons counts.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.phrases import fixes, short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import Gpu

HOT = frozenset({"hw_slowdown", "hw_thermal", "hw_power_brake", "sw_thermal"})
IN_USE = 20.0  # percent
FAR_BELOW = 0.8  # of the other GPUs' clock


def _in_use(scene: Scene) -> list[Gpu]:
    return [gpu for gpu in scene.of(Gpu) if (gpu.utilization_percent or 0) >= IN_USE]


def _held(scene: Scene) -> list[Gpu]:
    return [gpu for gpu in _in_use(scene) if HOT & set(gpu.throttled)]


def _slow(scene: Scene) -> list[Gpu]:
    """GPUs in use whose clock is far below that of the middle one."""
    used = [gpu for gpu in _in_use(scene) if gpu.sm_clock_mhz]
    clocks = sorted(gpu.sm_clock_mhz or 0 for gpu in used)
    limit = FAR_BELOW * clocks[len(clocks) // 2] if len(used) > 2 else 0
    return [gpu for gpu in used if (gpu.sm_clock_mhz or 0) < limit]


def _reasons(gpu: Gpu) -> str:
    return ", ".join(sorted(HOT & set(gpu.throttled)))


def _weigh(scene: Scene) -> Weighings:
    held, slow, events = _held(scene), _slow(scene), scene.events("gpu-throttled")
    if held:
        gpu = held[0]
        says = (
            f"GPU {gpu.index} is held down ({_reasons(gpu)}) at {gpu.utilization_percent:.0f} %"
            f" use, {gpu.temperature_c or 0:.0f} °C"
        )
        yield weighing(13, "gpu", says, *held)
    if slow:
        clock = f"{slow[0].sm_clock_mhz} MHz"
        says = f"GPU {slow[0].index} runs at {clock}, far below the node's others"
        yield weighing(10, "host-pressure", says, *slow)
    if events and not held:
        says = f"nvidia-smi reported it: {short(events[0].line, 80)}"
        yield weighing(13, "gpu", says, *events)


def _summary(scene: Scene) -> str:
    gpu = next(iter((*_held(scene), *_slow(scene))), None)
    if gpu is None:
        reason = short(scene.events("gpu-throttled")[0].line.split(":")[0], 40)
        return f"A GPU of {subject(scene)} has its clocks held down ({reason})"
    why = _reasons(gpu) or "no reason given"
    return f"GPU {gpu.index} of {subject(scene)} has its clocks held down ({why})"


CAUSE = Cause(
    id="gpu-throttled",
    title="A GPU's clocks are held down",
    modes=("slow", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        See the reasons
            nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK
        [admin] Cooling, or the power cap
            nvidia-smi -pl <WATTS>
            look at fans and air flow
        [admin] Take the node out of service
            scontrol update nodename=<NODE> state=drain reason='throttled'
    """),
    would_settle="nvidia-smi -q -d PERFORMANCE,CLOCK on that GPU and on another",
    refines="straggler-rank",
    ready=ReadySigns(
        says=("has a GPU that is slowed down", "have GPUs that are slowed down"),
        checks=("drv.throttle", "drv.clocks", "drv.temp", "drv.pcie"),
    ),
)
