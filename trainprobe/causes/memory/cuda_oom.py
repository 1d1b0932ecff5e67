"""A rank needs more GPU memory than there is.

The batch, the activations or the optimizer state do not fit. torch says how much was asked for and
how much was free. cuBLAS, cuDNN and NCCL say it in their own words when they cannot allocate.

It is recognised by those words of the rank that failed first, and by the numbers beside them.
Memory that another process holds (`gpu-memory-held-by-other`) and memory in pieces
(`cuda-fragmentation`) look alike; the numbers tell. cuBLAS that could not start is short of memory
as well, unless a kernel's assertion came before it: then it is that one's echo.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.gpu_memory import WORDING, shortage
from trainprobe.causes.phrases import fixes, short, size, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, quote, statement, weigh_statement
from trainprobe.signatures.messages import message

CUBLAS = message("cuda-oom.cublas")
CUDNN = message("cuda-oom.cudnn")
BEFORE = message("cuda-oom.before")


def _weigh(scene: Scene) -> Weighings:
    heard = statement(scene, WORDING)
    if heard is not None:
        yield from weigh_statement(scene, WORDING)
        yield from first_to_fail(scene) if not heard.late else ()
        return
    maybe, before = statement(scene, f"{CUBLAS}|{CUDNN}"), statement(scene, BEFORE)
    if maybe is None:
        return
    if before is not None:
        says = (
            f"A library could not start, which follows from {short(before.text, 80)} as well:"
            f" {short(maybe.text, 100)}"
        )
        yield weighing(3, "suspects-log", says, maybe.fact)
    else:
        points = 13 if statement(scene, CUBLAS) is not None else 10
        yield quote(points, "A library could not start, as happens when memory is short", maybe)


def _summary(scene: Scene) -> str:
    found = shortage(scene)
    place = scene.at_own_line
    if found is None:
        return (
            f"{subject(scene)} could not start a GPU library{place}, most likely because the GPU's"
            " memory is full"
        )
    numbers = found.numbers
    free = f" and {_exact(numbers.free)} was free" if numbers.free is not None else ""
    of = f" of {_exact(numbers.total)}" if numbers.total is not None and free else ""
    asked = f": it asked for {_exact(numbers.asked)}{free}{of}" if numbers.asked is not None else ""
    held = ""
    if numbers.allocated is not None:
        held = f"; torch held {size(numbers.allocated)} in tensors"
    return f"{subject(scene)} ran out of GPU memory{place}{asked}{held}"


def _exact(count: float | None) -> str:
    """As torch prints it, so that it can be found in the log."""
    if count is not None and count >= 2**30:
        return f"{count / 2**30:.2f} GiB"
    return f"{(count or 0) / 2**20:.2f} MiB"


CAUSE = Cause(
    id="cuda-oom",
    title="A GPU ran out of memory",
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        Need less
            halve the batch per rank and double gradient accumulation
            torch.utils.checkpoint for the largest blocks; bf16
        Split the state over the ranks
            FSDP, or ZeRO stage 2 or 3
        See who holds the memory
            nvidia-smi --query-compute-apps=pid,used_memory --format=csv
    """),
    would_settle="nvidia-smi beside torch.cuda.memory_summary() just before the failing line",
    refines="user-exception",
    accounts_for=("native-crash",),
    wording=f"{WORDING}|{CUBLAS}|{CUDNN}",
)
