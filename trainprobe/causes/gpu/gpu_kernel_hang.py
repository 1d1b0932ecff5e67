"""A GPU kernel does not end.

A kernel spins or waits on the device for ever: a defect of a fused kernel, a spin on a flag that
nobody sets, a collective of the user's own. The stream stays busy, and the host thread waits for
the device.

It is recognised by a rank that waits for the device, not for a peer, in all looks while its GPU is
fully used, with all other ranks in a later collective. A rank that waits inside a collective's own
call, or whose GPU idles, rules it out; waiting for NCCL's kernel looks alike where no recorder is
there. Where the driver or the runtime ends the kernel for its length (Xid 8 or 109, CUDA error 702,
ROCm's "GPU Hang"), they say so.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import others_wait
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import statement, weigh_message
from trainprobe.causes.xids import weigh_xids
from trainprobe.facts import Gpu, LogEvent, LogJob, MainThread, Xid
from trainprobe.signatures.messages import message
from trainprobe.waits.standings import AT_A_GPU

WORDING = message("gpu-kernel-hang")
IDLE_PERCENT = 5.0


def _waiting(scene: Scene) -> tuple[MainThread, ...]:
    """Suspects that wait for their device, outside any collective's call."""
    return tuple(
        thread
        for thread in scene.threads(scene.suspects)
        if thread.leaf == AT_A_GPU and thread.moved is not True
    )


def _gpus(scene: Scene, thread: MainThread) -> tuple[Gpu, ...]:
    return tuple(gpu for gpu in scene.of(Gpu) if thread.pid in gpu.pids)


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_message(scene, WORDING)
    yield from weigh_xids(scene, CAUSE.id)
    waiting = _waiting(scene)
    if scene.group.mode == "hang" and (not waiting or scene.one(LogJob) is not None):
        yield from _printed(scene)
    if not waiting or scene.group.mode != "hang":
        return
    first = waiting[0]
    elsewhere = [thread for thread in scene.threads(scene.others) if thread.leaf == AT_A_GPU]
    # where all wait for their device, it may be one collective's kernel
    points = 6 if elsewhere or first.moved is None else 10
    says = (
        f"Rank {first.rank} waits for its GPU ({first.op}) at {first.where} in {first.looks} looks"
    )
    yield weighing(points, "suspects-stack", says, *waiting)
    gpus = _gpus(scene, first)
    busy = [gpu for gpu in gpus if gpu.busy]
    if busy:
        power = f" at {busy[0].drawn}" if busy[0].drawn else ""
        says = (
            f"GPU {busy[0].index} is in use for {busy[0].utilization_percent:.0f} %{power}"
            " meanwhile"
        )
        yield weighing(3 if busy[0].works_hard else 10, "gpu", says, *busy)
    elif gpus and all(
        gpu.utilization_percent is not None and gpu.utilization_percent <= IDLE_PERCENT
        for gpu in gpus
    ):
        yield weighing(-26, "gpu", f"GPU {gpus[0].index} idles, so no kernel runs there", *gpus)
    # kernel exceptions and faults
    broken = [xid for xid in scene.facts.of(Xid) if xid.code in (13, 31, 43, 45)]
    if broken:
        says = f"The kernel log has Xid {broken[0].code}: {broken[0].text[:80]}"
        yield weighing(10, "kernel-log", says, *broken)
    if not elsewhere:
        yield from others_wait(scene)


def _printed(scene: Scene) -> Weighings:
    """The stack that a stalled suspect's faulthandler printed, unless another rank's is alike."""
    frames = [
        event
        for event in scene.events("gpu-synchronize-frame")
        if event.rank is not None and event.rank in scene.suspects
    ]
    alike = [
        event
        for event in scene.of(LogEvent)
        if event.event == "gpu-synchronize-frame" and event.rank in scene.others
    ]
    if frames and not alike and len(scene.others) > 0:
        op = frames[0].captured.get("op", "synchronize")
        says = f"Rank {frames[0].rank} printed that it stands in torch.cuda's {op}"
        yield weighing(13, "suspects-stack", says, *frames)
        waiting = [
            event
            for event in scene.of(LogEvent)
            if event.event == "collective-timeout" and event.rank in scene.others
        ]
        if waiting:
            says = (
                f"{ranks_say([event.rank or 0 for event in waiting])} gave up waiting in a"
                " collective meanwhile"
            )
            yield weighing(6, "other-stacks", says, *waiting)


def _summary(scene: Scene) -> str:
    thread = next(iter(_waiting(scene)), None)
    if thread is None:
        found = statement(scene, WORDING)
        frames = scene.events("gpu-synchronize-frame")
        says = ""
        if found is not None:
            says = f" ({short(found.match.group(0), 80)})"
        elif frames:
            says = " while it waits in torch.cuda's synchronize"
        return f"A kernel of {ranks_say(scene.ranks, capital=False)} did not end on its GPU{says}"
    gpu = next(iter(_gpus(scene, thread)), None)
    return (
        f"{subject(scene)} waits at {thread.where} for"
        f" {f'GPU {gpu.index}' if gpu is not None else 'its GPU'}, where a kernel does not end"
    )


FIXES = """
[disruptive] Name the kernel
    cuda-gdb -p {pid} -batch -ex 'info cuda kernels'   (it stops the process while it looks)
A core dump of the GPU next time
    export CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1 CUDA_COREDUMP_PIPE=/tmp/gpucore.%p
A newer kernel library, or none
    upgrade flash-attn, xformers or triton; run once with the plain implementation
"""


def _fixes(scene: Scene) -> Fixes:
    pid = next((thread.pid for thread in _waiting(scene)), 0)
    return fixes(FIXES, pid=pid or "<PID>")


CAUSE = Cause(
    id="gpu-kernel-hang",
    title="A GPU kernel does not end",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="cuda-gdb -p <PID> -batch -ex 'info cuda kernels' on that rank",
    refines="user-exception",
    wording=WORDING,
    pids=lambda scene: tuple(thread.pid for thread in _waiting(scene)),
)
