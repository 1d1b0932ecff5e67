"""A rank needs more GPU memory than there is.

The batch, the activations or the optimizer state do not fit. torch says how much was asked for and how much was free. cuBLAS, cuDNN and NCCL
say it in their own words when they cannot allocate.

It is recognised by those words of the rank that failed first, and by the numbers beside them. Memory that another process holds
(`gpu-memory-held-by-other`) and memory in pieces (`cuda-fragmentation`) look alike; the numbers tell. cuBLAS that could not start is short of
memory as well, unless a kernel's assertion came before it: then it is that one's echo.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.gpu_memory import WORDING, shortage
from trainprobe.causes.scene import Scene, user_frame, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short, size, subject
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# What libraries say when they cannot start: for want of memory, or because the device has failed before.
CUBLAS = r"CU(?:BLAS|SOLVER)_STATUS_NOT_INITIALIZED|calling `cusolverDnCreate\(handle\)`"
CUDNN = r"CUDNN_STATUS_NOT_INITIALIZED|Unable to find a valid cuDNN algorithm to run convolution"
# Faults of the device after which every library fails to start.
BEFORE = r"device-side assert|Assertion `|illegal memory access|unspecified launch failure|ECC error|no kernel image|not compatible with the current PyTorch"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    if heard is not None:
        yield from spoken(scene, WORDING)
        yield from first_to_fail(scene) if not heard.late else ()
        return
    maybe, before = said(scene, f"{CUBLAS}|{CUDNN}"), said(scene, BEFORE)
    if maybe is None:
        return
    if before is not None:
        yield weighing(
            3, "suspects-log", f"A library could not start, which follows from {short(before.text, 80)} as well: {short(maybe.text, 100)}", maybe.fact
        )
    else:
        points = 13 if said(scene, CUBLAS) is not None else 10
        yield weighing(points, "suspects-log", f"A library could not start, as happens when memory is short: {short(maybe.text)}", maybe.fact)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    found = shortage(scene)
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    place = f" at {frame.where}" if frame else ""
    if found is None:
        return sentence(f"{subject(scene)} could not start a GPU library{place}, most likely because the GPU's memory is full")
    numbers = found.numbers
    free = f" and {_exact(numbers.free)} was free" if numbers.free is not None else ""
    of = f" of {_exact(numbers.total)}" if numbers.total is not None and free else ""
    asked = f": it asked for {_exact(numbers.asked)}{free}{of}" if numbers.asked is not None else ""
    held = f"; torch held {size(numbers.allocated)} in tensors" if numbers.allocated is not None else ""
    return sentence(f"{subject(scene)} ran out of GPU memory{place}{asked}{held}")


def _exact(count: float | None) -> str:
    """As torch prints it, so that it can be found in the log."""
    return f"{count / 2**30:.2f} GiB" if count is not None and count >= 2**30 else f"{(count or 0) / 2**20:.2f} MiB"


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
    telling="CUDA out of memory, or cuBLAS, cuDNN and NCCL that cannot allocate.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="nvidia-smi beside torch.cuda.memory_summary() just before the failing line",
    refines="user-exception",
    accounts_for=("native-crash",),
    wording=f"{WORDING}|{CUBLAS}|{CUDNN}",
)
