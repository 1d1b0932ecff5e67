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
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.statements import first_to_fail, quote, statement, weigh_statement
from trainprobe.signatures.messages import message

CUBLAS = message("cuda-oom.cublas")
CUDNN = message("cuda-oom.cudnn")
BEFORE = message("cuda-oom.before")


def _weigh(scene: Scene) -> Weighings:
    found = statement(scene, WORDING)
    if found is not None:
        yield from weigh_statement(scene, WORDING)
        yield from first_to_fail(scene) if not found.late else ()
        return
    library, before = statement(scene, f"{CUBLAS}|{CUDNN}"), statement(scene, BEFORE)
    if library is None:
        return
    if before is not None:
        says = f"A library could not start, perhaps because of {short(before.text, 80)}"
        yield quote(3, says, library)
    else:
        points = 13 if statement(scene, CUBLAS) is not None else 10
        yield quote(points, "A library could not start, as happens when memory is short", library)


def _summary(scene: Scene) -> str:
    found, at = shortage(scene), scene.at_own_line
    if found is None:
        return (
            f"{subject(scene)} could not start a GPU library{at}, most likely because the GPU's"
            " memory is full"
        )
    numbers, asked, held = found.numbers, "", ""
    if numbers.asked is not None:
        asked = f": it asked for {_exact(numbers.asked)}"
        if numbers.free is not None:
            total = f" of {_exact(numbers.total)}" if numbers.total is not None else ""
            asked += f" and {_exact(numbers.free)} was free{total}"
    if numbers.allocated is not None:
        held = f"; torch held {size(numbers.allocated)} in tensors"
    return f"{subject(scene)} ran out of GPU memory{at}{asked}{held}"


def _exact(count: float) -> str:
    """As torch prints it, so that it can be found in the log."""
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.2f} MiB"


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
    would_settle="print(torch.cuda.memory_summary())   (just before the failing line)",
    refines="user-exception",
    accounts_for=("native-crash",),
    wording=f"{WORDING}|{CUBLAS}|{CUDNN}",
)
