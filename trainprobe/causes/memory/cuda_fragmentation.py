"""The GPU memory that torch holds lies in pieces too small for the request.

Tensors of many sizes come and go (other lengths in each batch, evaluation between training steps),
and the freed blocks between live ones cannot be joined. torch has reserved enough, and none of the
pieces is large enough.

It is recognised by the numbers of the out-of-memory message: reserved but unallocated is at least
what was asked for, and a good part of the device. Where another process holds the memory, or the
gap is smaller than the request, it is not this.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.gpu_memory import shortage, weigh_allocator
from trainprobe.causes.phrases import Fixes, fixes, size, subject
from trainprobe.causes.scene import Scene, Weighings, weighing

FIXES = """
{title}
    export PYTORCH_CUDA_ALLOC_CONF={setting}
Fewer sizes
    pad batches to a few lengths; torch.cuda.empty_cache() once between training and evaluation
See the pieces
    torch.cuda.memory._record_memory_history(); torch.cuda.memory._dump_snapshot('memory.pickle') on
        the failure
"""


def _weigh(scene: Scene) -> Weighings:
    found = shortage(scene)
    if found is None or not found.numbers.in_pieces:
        return
    numbers, sure = found.numbers, found.kind == "pieces"
    says = (
        f"torch had {size(numbers.unallocated)} reserved and not in use, and {size(numbers.asked)}"
        " were asked for"
    )
    yield weighing(10 if sure else 6, "gpu", says, found.heard.fact)
    if sure:
        yield from weigh_allocator(scene, found)


def _summary(scene: Scene) -> str:
    found, at = shortage(scene), scene.at_own_line
    if found is None:
        return f"{subject(scene)} found no piece of GPU memory large enough{at}"
    numbers = found.numbers
    return (
        f"{subject(scene)} found no piece of {size(numbers.asked)}{at}, although torch had"
        f" {size(numbers.unallocated)} of its {size(numbers.reserved)} reserved and not in use"
    )


def _fixes(scene: Scene) -> Fixes:
    torch = scene.given("version.torch")
    # expandable_segments came with torch 2.1; torch 2.9 renamed the variable and still reads both.
    if torch is not None and re.match(r"1\.|2\.0\b", torch.value):
        return fixes(FIXES, title="Split large blocks less", setting="max_split_size_mb:128")
    return fixes(FIXES, title="Let segments grow", setting="expandable_segments:True")


CAUSE = Cause(
    id="cuda-fragmentation",
    title="GPU memory is in pieces",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle=(
        "torch.cuda.memory_summary() just before the failing line: inactive split blocks against"
        " the size that was asked for"
    ),
    refines="cuda-oom",
    accounts_for=("user-exception", "native-crash"),
)
