"""Another process holds the GPU memory that this job needs.

A notebook that was left open, an earlier run that has not ended, another user's job on the same
device: the memory is gone before this job asks for it.

It is recognised by the numbers of the out-of-memory message: what is neither free nor this
process's own is much, and the request would fit without it; torch 2.1 and later even name the other
processes. A device that refuses because it is taken (CUDA error 46), or memory that runs out at the
first touch of the GPU, says the same. Processes that are ranks of this very job are not meant.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.gpu_memory import Shortage, shortage, weigh_allocator
from trainprobe.causes.phrases import Fixes, fixes, size, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import stated
from trainprobe.signatures.messages import message

TAKEN = message("gpu-memory-held-by-other.taken")
FIXES = """
See who holds it
    nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv
    {look}
[disruptive] End it, if it is yours and left over
    kill {pids}
    verify: nvidia-smi
Take a free GPU
    CUDA_VISIBLE_DEVICES=…, or ask the scheduler for exclusive GPUs
"""


def _pids(found: Shortage | None) -> str:
    holders = found.numbers.holders if found is not None else ()
    named = ", ".join(f"{pid} ({size(used)})" for pid, used in holders)
    return f"pid{'s' if len(holders) > 1 else ''} {named}" if named else ""


def _weigh(scene: Scene) -> Weighings:
    found = shortage(scene)
    if found is None:
        yield from stated(TAKEN)(scene)
        return
    numbers = found.numbers
    if found.kind == "others" and numbers.total is None:
        says = (
            f"Memory ran out at the first touch of the GPU, before the rank held any: {found.why}"
        )
        yield weighing(10, "suspects-stack", says, found.heard.fact)
    elif found.kind in ("others", "loading") and numbers.held_by_others:
        pids = f": {_pids(found)}" if _pids(found) else ""
        says = (
            f"{size(numbers.others)} of {size(numbers.total)} are neither free nor this"
            f" process's own{pids}"
        )
        yield weighing(13 if found.kind == "others" else 6, "gpu", says, found.heard.fact)
    if found.kind == "others":
        yield from weigh_allocator(scene, found)


def _summary(scene: Scene) -> str:
    found = shortage(scene)
    if found is None or found.numbers.others is None:
        return f"{subject(scene)} cannot have its GPU: another process holds it"
    numbers = found.numbers
    gpu = f"GPU {numbers.gpu}" if numbers.gpu is not None else "the GPU"
    who = f" ({_pids(found)})" if _pids(found) else ""
    return (
        f"{subject(scene)} ran out of memory on {gpu}, of whose {size(numbers.total)} other"
        f" processes{who} hold about {size(numbers.others)}"
    )


def _fixes(scene: Scene) -> Fixes:
    found = shortage(scene)
    pids = [str(pid) for pid, _ in found.numbers.holders] if found is not None else []
    look = "fuser -v /dev/nvidia*   (shows processes that nvidia-smi hides)"
    if pids:
        look = f"ps -o pid,user,lstart,cmd -p {','.join(pids)}"
    return fixes(FIXES, look=look, pids=" ".join(pids) or "<PID>")


CAUSE = Cause(
    id="gpu-memory-held-by-other",
    title="Another process holds the GPU's memory",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle=(
        "nvidia-smi --query-compute-apps=pid,used_memory --format=csv before the job starts"
    ),
    refines="cuda-oom",
    accounts_for=("user-exception", "native-crash"),
    wording=TAKEN,
    ready=ReadySigns(
        says=("has GPU memory that others hold", "have GPU memory that others hold"),
        checks=("drv.memused",),
    ),
)
