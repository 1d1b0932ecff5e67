"""A GPU kernel does not end.

A kernel spins or waits on the device for ever: a defect of a fused kernel, a spin on a flag that nobody sets, a collective of the user's own. The stream stays
busy, and the host thread waits for the device.

It is recognised by a rank that waits for the device, not for a peer, in all looks while its GPU is fully used, with all other ranks in a later collective. A rank that
waits inside a collective's own call, or whose GPU idles, rules it out; waiting for NCCL's kernel looks alike where no recorder is there. Where the driver or
the runtime ends the kernel for its length (Xid 8 or 109, CUDA error 702, ROCm's "GPU Hang"), they say so.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.ends import others_wait
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, ranks_say, sentence, short, subject
from trainprobe.causes.xids import weigh_xids
from trainprobe.facts import Facts, Gpu, LogEvent, LogJob, MainThread, Xid
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

WORDING = r"the launch timed out and was terminated|cudaErrorLaunchTimeout|CUDA_ERROR_LAUNCH_TIMEOUT|reason ?:GPU Hang|amdgpu: GPU reset begin|ring [\w.]+ timeout, signaled seq="
BUSY, IDLE = 95.0, 5.0  # percent of utilisation


def _waiting(scene: Scene) -> tuple[MainThread, ...]:
    """Suspects that wait for their device, outside any collective's call."""
    return tuple(thread for thread in scene.threads(scene.suspects) if thread.leaf == "gpu-wait" and thread.moved is not True)


def _gpus(scene: Scene, thread: MainThread) -> tuple[Gpu, ...]:
    return tuple(gpu for gpu in scene.facts.of(Gpu, cell=scene.cell) if any(process.pid == thread.pid for process in gpu.processes))


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    if said(scene, WORDING) is not None:
        yield from spoken(scene, WORDING)
        yield from first_to_fail(scene)
    yield from weigh_xids(scene, CAUSE.id)
    waiting = _waiting(scene)
    if group.mode == "hang" and (not waiting or scene.facts.one(LogJob, cell=scene.cell) is not None):
        yield from _printed(scene)
    if not waiting or group.mode != "hang":
        return
    first = waiting[0]
    elsewhere = [thread for thread in scene.threads(scene.others) if thread.leaf == "gpu-wait"]
    points = 6 if elsewhere or first.moved is None else 10  # where all wait for their device, it may be one collective's kernel
    yield weighing(points, "suspects-stack", f"Rank {first.rank} waits for its GPU ({first.op}) at {first.where} in {first.looks} looks", *waiting)
    gpus = _gpus(scene, first)
    busy = [gpu for gpu in gpus if (gpu.utilization_percent or 0) >= BUSY]
    if busy:
        power = f" at {busy[0].power_w:.0f} W" if busy[0].power_w is not None else ""
        yield weighing(10, "gpu", f"GPU {busy[0].index} is in use for {busy[0].utilization_percent:.0f} %{power} meanwhile", *busy)
    elif gpus and all(gpu.utilization_percent is not None and gpu.utilization_percent <= IDLE for gpu in gpus):
        yield weighing(-26, "gpu", f"GPU {gpus[0].index} idles, so no kernel runs there", *gpus)
    broken = [xid for xid in facts.of(Xid) if xid.code in (13, 31, 43, 45)]  # kernel exceptions and faults
    if broken:
        yield weighing(10, "kernel-log", f"The kernel log has Xid {broken[0].code}: {broken[0].text[:80]}", *broken)
    if not elsewhere:
        yield from others_wait(scene)


def _printed(scene: Scene) -> Iterator[Weighing]:
    """The stack that a suspect's faulthandler printed when it had stood still for long enough, where no other rank's is alike."""
    frames = [event for event in scene.events("gpu-synchronize-frame") if event.rank is not None and event.rank in scene.suspects]
    alike = [event for event in scene.facts.of(LogEvent, cell=scene.cell) if event.event == "gpu-synchronize-frame" and event.rank in scene.others]
    if frames and not alike and len(scene.others) > 0:
        op = frames[0].captured.get("op", "synchronize")
        yield weighing(13, "suspects-stack", f"Rank {frames[0].rank} printed that it stands in torch.cuda's {op}", *frames)
        waiting = [event for event in scene.facts.of(LogEvent, cell=scene.cell) if event.event == "collective-timeout" and event.rank in scene.others]
        if waiting:
            yield weighing(6, "other-stacks", f"{ranks_say([event.rank or 0 for event in waiting])} gave up waiting in a collective meanwhile", *waiting)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    thread = next(iter(_waiting(scene)), None)
    if thread is None:
        heard = said(scene, WORDING)
        frames = scene.events("gpu-synchronize-frame")
        says = f" ({short(heard.match.group(0), 80)})" if heard is not None else " while it waits in torch.cuda's synchronize" if frames else ""
        return sentence(f"A kernel of {ranks_say(group.ranks, capital=False)} did not end on its GPU{says}")
    gpu = next(iter(_gpus(scene, thread)), None)
    return sentence(f"{subject(scene)} waits at {thread.where} for {f'GPU {gpu.index}' if gpu is not None else 'its GPU'}, where a kernel does not end")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    pid = next((thread.pid for thread in _waiting(scene)), 0)
    return (
        fix(
            scene, "Name the kernel", f"cuda-gdb -p {pid or '<PID>'} -batch -ex 'info cuda kernels'   (it stops the process while it looks)", risk="disruptive"
        ),
        fix(scene, "A core dump of the GPU next time", "export CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1 CUDA_COREDUMP_PIPE=/tmp/gpucore.%p"),
        fix(scene, "A newer kernel library, or none", "upgrade flash-attn, xformers or triton; run once with the plain implementation"),
    )


CAUSE = Cause(
    id="gpu-kernel-hang",
    title="A GPU kernel does not end",
    means="A GPU kernel never ends.",
    telling="One rank's stream stays busy, its host thread waits for the device, and no peer is missing.",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="cuda-gdb -p <PID> -batch -ex 'info cuda kernels' on that rank",
    refines="user-exception",
    wording=WORDING,
    pids=lambda facts, group: tuple(thread.pid for thread in _waiting(Scene(facts, group))),
)
