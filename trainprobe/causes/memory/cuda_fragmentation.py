"""The GPU memory that torch holds lies in pieces too small for the request.

Tensors of many sizes come and go (other lengths in each batch, evaluation between training steps),
and the freed blocks between live ones cannot be joined. torch has reserved enough, and none of the
pieces is large enough.

It is recognised by the numbers of the out-of-memory message: reserved but unallocated is at least
what was asked for, and a good part of the device. Where another process holds the memory, or the
gap is smaller than the request, it is not this.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.gpu_memory import shortage
from trainprobe.causes.phrases import Fixes, fix, fixes, short, size, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail


def _weigh(scene: Scene) -> Weighings:
    found = shortage(scene)
    if found is None or not found.numbers.in_pieces:
        return
    numbers = found.numbers
    says = (
        f"torch had {size(numbers.unallocated)} reserved and not in use, and {size(numbers.asked)}"
        " were asked for"
    )
    if found.kind != "pieces":
        yield weighing(6, "gpu", says, found.heard.fact)
        return
    yield weighing(10, "gpu", says, found.heard.fact)
    yield weighing(
        26 if found.heard.origin else 13,
        "suspects-log",
        f"The allocator says: {short(found.heard.text, 120)}",
        found.heard.fact,
    )
    yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    found = shortage(scene)
    place = scene.at_own_line
    if found is None:
        return f"{subject(scene)} found no piece of GPU memory large enough{place}"
    numbers = found.numbers
    return (
        f"{subject(scene)} found no piece of {size(numbers.asked)}{place}, although torch had"
        f" {size(numbers.unallocated)} of its {size(numbers.reserved)} reserved and not in use"
    )


def _fixes(scene: Scene) -> Fixes:
    torch = scene.given("version.torch")
    major, _, rest = (torch.value if torch is not None else "").partition(".")
    minor = rest.split(".")[0]
    old = major == "1" or (major == "2" and minor == "0")
    # expandable_segments came with torch 2.1; the name without CUDA with 2.9, which still reads the
    # older one.
    setting = "max_split_size_mb:128" if old else "expandable_segments:True"
    return (
        fix(
            "Let segments grow" if not old else "Split large blocks less",
            f"export PYTORCH_CUDA_ALLOC_CONF={setting}",
        ),
        *fixes("""
            Fewer sizes
                pad batches to a few lengths; torch.cuda.empty_cache() once between training and
                    evaluation
            See the pieces
                torch.cuda.memory._record_memory_history();
                    torch.cuda.memory._dump_snapshot('memory.pickle') on the failure
        """),
    )


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
