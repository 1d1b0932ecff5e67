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
from trainprobe.causes.gpu_memory import Shortage, shortage
from trainprobe.causes.phrases import Fixes, fix, short, size, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, weigh_message
from trainprobe.signatures.messages import message

TAKEN = message("gpu-memory-held-by-other.taken")


def _pids(found: Shortage | None) -> str:
    named = found.numbers.named if found is not None else ()
    return ", ".join(f"{pid} ({size(used)})" for pid, used in named[:4])


def _weigh(scene: Scene) -> Weighings:
    found = shortage(scene)
    if found is None:
        yield from weigh_message(scene, TAKEN)
        return
    numbers = found.numbers
    if found.kind == "others" and numbers.total is None:
        says = (
            f"Memory ran out at the first touch of the GPU, before the rank held any: {found.why}"
        )
        yield weighing(10, "suspects-stack", says, found.heard.fact)
    elif found.kind in ("others", "loading") and numbers.held_by_others:
        pids = _pids(found)
        says = (
            f"{size(numbers.others)} of {size(numbers.total)} are neither free nor this"
            " process's own"
        )
        says = f"{says}{f': pids {pids}' if pids else ''}"
        yield weighing(13 if found.kind == "others" else 6, "gpu", says, found.heard.fact)
    if found.kind == "others":
        says = f"The allocator says: {short(found.heard.text, 120)}"
        yield weighing(26 if found.heard.origin else 13, "suspects-log", says, found.heard.fact)
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    found = shortage(scene)
    if found is None or found.numbers.others is None:
        return f"{subject(scene)} cannot have its GPU: another process holds it"
    numbers, pids = found.numbers, _pids(found)
    gpu = f"GPU {numbers.gpu}" if numbers.gpu is not None else "the GPU"
    who = f" (pids {pids})" if pids else ""
    return (
        f"{subject(scene)} ran out of memory on {gpu}, of whose {size(numbers.total)} other"
        f" processes{who} hold about {size(numbers.others)}"
    )


def _fixes(scene: Scene) -> Fixes:
    found = shortage(scene)
    pids = [str(pid) for pid, _ in found.numbers.named[:4]] if found is not None else []
    return (
        fix(
            "See who holds it",
            "nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv",
            (
                f"ps -o pid,user,lstart,cmd -p {','.join(pids)}"
                if pids
                else "fuser -v /dev/nvidia*   (shows processes that nvidia-smi hides)"
            ),
        ),
        fix(
            "End it, if it is yours and left over",
            f"kill {' '.join(pids) or '<PID>'}",
            disruptive=True,
            verify="nvidia-smi",
        ),
        fix("Take a free GPU", "CUDA_VISIBLE_DEVICES=…, or ask the scheduler for exclusive GPUs"),
    )


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
