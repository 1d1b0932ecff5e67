"""A GPU kernel reads or writes outside its memory.

A fused attention, a quantised matrix product, a custom op: the kernel computes a wrong address for
some shape. The error is reported at a later call, so the Python line beside it is often another
one, and every library of that process then fails as well.

It is recognised by "an illegal memory access was encountered" and its kin (unspecified launch
failure, misaligned address, ROCm's memory access fault), and by Xid 13 or 31. An assertion of a
kernel, an uncorrectable memory error or a lost GPU in the same log is the better name.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.phrases import Fixes, fixes, short, subject
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.signs import first_of, quoted, stated
from trainprobe.causes.statements import statement
from trainprobe.causes.xids import weigh_xids
from trainprobe.signatures.messages import message

WORDING = message("illegal-memory-access")
LIBRARY_FAILED = message("illegal-memory-access.library-failed")
BETTER = message("illegal-memory-access.better")
# Packages whose kernels such reports end at.
LIBRARIES = re.compile(
    r"(flash_attn|xformers|bitsandbytes|apex|triton|deepspeed|mamba_ssm|causal_conv1d|vllm"
    r"|torch_scatter|torch_sparse|spconv|transformer_engine|fbgemm)"
)


def _weigh(scene: Scene) -> Weighings:
    if statement(scene, BETTER) is not None:
        yield from quoted(6, "The output says", WORDING)(scene)
    else:
        # The kernel of a library fails by its own fault or by an earlier kernel's.
        failed = quoted(10, "A library's kernel failed", LIBRARY_FAILED)
        yield from first_of(stated(WORDING), failed)(scene)
    yield from weigh_xids(scene, CAUSE.id)


def _library(scene: Scene) -> str:
    for frame in reversed(scene.origin.frames if scene.origin is not None else ()):
        match = LIBRARIES.search(frame.file.replace("\\", "/"))
        if match is not None:
            return match.group(1)
    return ""


def _summary(scene: Scene) -> str:
    library, frame = _library(scene), scene.own_frame
    found = statement(scene, WORDING) or statement(scene, LIBRARY_FAILED)
    says = f" ({short(found.match.group(0), 60)})" if found is not None else ""
    place = f"; it was noticed at {frame.where}, which need not be its line" if frame else ""
    return (
        f"A GPU kernel{f' of {library}' if library else ''} of"
        f" {subject(scene)[:1].lower()}{subject(scene)[1:]} went outside its memory{says}{place}"
    )


FIXES = """
Find the kernel's own line
    CUDA_LAUNCH_BLOCKING=1 with the same batch; compute-sanitizer --tool memcheck python …
A core dump of the GPU next time
    export CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_COREDUMP_FILE=/tmp/gpucore.%p
A newer {library}, or none
    {upgrade}
    run once with the plain implementation: attn_implementation='eager' or 'sdpa'; without
        torch.compile
If it follows one node, look at its GPU
    dmesg -T | grep -i xid
    nvidia-smi -q -d ECC
"""


def _fixes(scene: Scene) -> Fixes:
    library = _library(scene)
    upgrade = "upgrade flash-attn, bitsandbytes, xformers, apex or triton, whichever is in use"
    if library:
        upgrade = f"pip install -U {library.replace('_', '-')}"
    return fixes(FIXES, library=library or "kernel library", upgrade=upgrade)


CAUSE = Cause(
    id="illegal-memory-access",
    title="A GPU kernel went outside its memory",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="the same batch with CUDA_LAUNCH_BLOCKING=1, then compute-sanitizer",
    refines="user-exception",
    accounts_for=("native-crash",),
    wording=f"{WORDING}|{LIBRARY_FAILED}",
)
