"""A rank needs more GPU memory than there is.

The batch, the activations or the optimizer state do not fit. torch says how much was asked for and how much was free. cuBLAS and NCCL say it
in their own words when they cannot allocate.

It is recognised by those words of the rank that failed first. Memory that another process holds (`gpu-memory-held-by-other`) looks
alike; the message's numbers tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, user_frame, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short, subject
from trainprobe.facts import Facts, RankException
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# c10/cuda/CUDACachingAllocator.cpp, the CUDA runtime, cuBLAS and NCCL.
WORDING = (
    r"CUDA out of memory|torch\.(cuda\.)?OutOfMemoryError|CUDA error: out of memory|Cuda failure.*out of memory|CUBLAS_STATUS_ALLOC_FAILED|HIP out of memory"
)
MAYBE = r"CUBLAS_STATUS_NOT_INITIALIZED"
ASKED = re.compile(r"Tried to allocate ([\d.]+ [KMGT]iB)")
FREE = re.compile(r"of which ([\d.]+ [KMGT]iB) is free")


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    if heard is not None:
        yield from spoken(scene, WORDING)
        yield from first_to_fail(scene)
        return
    maybe = said(scene, MAYBE)
    if maybe is not None:  # also said when a label is out of range, so it names nothing alone
        yield weighing(6, "suspects-log", f"cuBLAS could not start, as it does when memory is short: {short(maybe.text)}", maybe.fact)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    text = heard.fact.message if heard is not None and isinstance(heard.fact, RankException) else heard.text if heard else ""
    asked, free = ASKED.search(text), FREE.search(text)
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    numbers = f": it asked for {asked.group(1)}{f' and {free.group(1)} was free' if free else ''}" if asked else ""
    return sentence(f"{subject(scene)} ran out of GPU memory{f' at {frame.where}' if frame else ''}{numbers}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "Need less", "halve the batch per rank and double gradient accumulation", "torch.utils.checkpoint for the largest blocks; bf16"),
        fix(scene, "Split the state over the ranks", "FSDP, or ZeRO stage 2 or 3"),
        fix(scene, "See who holds the memory", "nvidia-smi --query-compute-apps=pid,used_memory --format=csv"),
    )


CAUSE = Cause(
    id="cuda-oom",
    title="A GPU ran out of memory",
    means="This process needs more GPU memory than there is.",
    telling="CUDA out of memory, or cuBLAS and NCCL that cannot allocate.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="nvidia-smi beside torch.cuda.memory_summary() just before the failing line",
    refines="user-exception",
    wording=WORDING,
)
