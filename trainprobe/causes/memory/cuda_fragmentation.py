"""The GPU memory that torch holds lies in pieces too small for the request.

Tensors of many sizes come and go (other lengths in each batch, evaluation between training steps), and the freed blocks between live ones
cannot be joined. torch has reserved enough, and none of the pieces is large enough.

It is recognised by the numbers of the out-of-memory message: reserved but unallocated is at least what was asked for, and a good part of the
device. Where another process holds the memory, or the gap is smaller than the request, it is not this.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.gpu_memory import shortage
from trainprobe.causes.scene import Scene, user_frame, weighing
from trainprobe.causes.spoken import first_to_fail
from trainprobe.causes.words import fix, sentence, short, size, subject
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    found = shortage(scene)
    if found is None or not found.numbers.in_pieces:
        return
    numbers = found.numbers
    says = f"torch had {size(numbers.unallocated)} reserved and not in use, and {size(numbers.asked)} were asked for"
    if found.kind != "pieces":
        yield weighing(6, "gpu", says, found.heard.fact)
        return
    yield weighing(10, "gpu", says, found.heard.fact)
    yield weighing(26 if found.heard.origin else 13, "suspects-log", f"The allocator says: {short(found.heard.text, 120)}", found.heard.fact)
    yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    found = shortage(scene)
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    place = f" at {frame.where}" if frame else ""
    if found is None:
        return sentence(f"{subject(scene)} found no piece of GPU memory large enough{place}")
    numbers = found.numbers
    return sentence(
        f"{subject(scene)} found no piece of {size(numbers.asked)}{place}, "
        f"although torch had {size(numbers.unallocated)} of its {size(numbers.reserved)} reserved and not in use"
    )


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    torch = scene.given("version.torch")
    major, _, rest = (torch.value if torch is not None else "").partition(".")
    minor = rest.split(".")[0]
    old = major == "1" or (major == "2" and minor == "0")
    # expandable_segments came with torch 2.1; the name without CUDA with 2.9, which still reads the older one.
    setting = "max_split_size_mb:128" if old else "expandable_segments:True"
    return (
        fix(scene, "Let segments grow" if not old else "Split large blocks less", f"export PYTORCH_CUDA_ALLOC_CONF={setting}"),
        fix(scene, "Fewer sizes", "pad batches to a few lengths; torch.cuda.empty_cache() once between training and evaluation"),
        fix(scene, "See the pieces", "torch.cuda.memory._record_memory_history(); torch.cuda.memory._dump_snapshot('memory.pickle') on the failure"),
    )


CAUSE = Cause(
    id="cuda-fragmentation",
    title="GPU memory is in pieces",
    means="GPU memory is reserved but lies in pieces too small for the request.",
    telling="Reserved is much larger than allocated, and the request would fit the difference.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="torch.cuda.memory_summary() just before the failing line: inactive split blocks against the size that was asked for",
    refines="cuda-oom",
    accounts_for=("user-exception", "native-crash"),
)
