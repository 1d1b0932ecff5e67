"""A gather of Python objects unpickles every rank's objects on the GPU.

`all_gather_object`, `gather_object` and the helpers that detection code bases copy from each other
pickle what they are given. Tensors come back on the GPU that they were on, so each rank receives
the results of all ranks in GPU memory, and the buffers of the gather stand there as well. It goes
well in training and fails at evaluation.

It is recognised by memory that runs out below such a call, or while pickle restores storages below
a gather.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.gpu_memory import shortage, weigh_allocator
from trainprobe.causes.phrases import Fixes, fixes, size, subject
from trainprobe.causes.scene import Scene, Weighings, user_frame, weighing
from trainprobe.stacks.frames import Frame

FIXES = """
Move tensors to the CPU first
    {place}: results = [{k: v.cpu() for k, v in one.items()} for one in results]
Gather over gloo
    group = dist.new_group(backend='gloo'); dist.all_gather_object(found, results, group=group)
Gather less
    reduce counts and sums on each rank; let rank 0 alone receive (gather_object), or write files
        and merge them
One device per rank
    torch.cuda.set_device(local_rank) before init_process_group: object collectives use the current
        device
"""


def _weigh(scene: Scene) -> Weighings:
    found = shortage(scene)
    if found is not None and found.kind == "objects":
        says = f"Memory ran out below {found.why or 'a gather of objects'}"
        frames = scene.events("object-collective-frame")[:1]
        yield weighing(13, "suspects-stack", says, found.heard.fact, *frames)
        yield from weigh_allocator(scene, found)


def _own_frame(scene: Scene) -> Frame | None:
    found = shortage(scene)
    return user_frame(found.frames) if found is not None else None


def _summary(scene: Scene) -> str:
    found, frame, asked = shortage(scene), _own_frame(scene), ""
    if found is not None and found.numbers.asked is not None:
        asked = f"; it asked for {size(found.numbers.asked)}"
    return (
        f"{subject(scene)} ran out of GPU memory while it gathered Python objects of all"
        f" ranks{f' at {frame.where}' if frame else ''}{asked}"
    )


def _fixes(scene: Scene) -> Fixes:
    frame = _own_frame(scene)
    return fixes(FIXES, place=f"{frame.base}:{frame.line}" if frame else "before the gather")


CAUSE = Cause(
    id="object-collective-oom",
    title="A gather of Python objects fills the GPU",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle=(
        "torch.cuda.memory_summary() before and after the gather, and the devices of the tensors"
        " that are gathered"
    ),
    refines="cuda-oom",
    accounts_for=("user-exception", "native-crash"),
)
