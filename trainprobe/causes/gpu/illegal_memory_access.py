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
from trainprobe.causes.phrases import Fixes, fix, short, subject
from trainprobe.causes.scene import Scene, Weighings, user_frame
from trainprobe.causes.statements import first_to_fail, quote, statement, weigh_statement
from trainprobe.causes.xids import weigh_xids
from trainprobe.signatures.messages import message
from trainprobe.stacks.frames import Frame

WORDING = message("illegal-memory-access")
LIBRARY_FAILED = message("illegal-memory-access.library-failed")
BETTER = message("illegal-memory-access.better")
# Packages whose kernels such reports end at.
LIBRARIES = re.compile(
    r"(flash_attn|xformers|bitsandbytes|apex|triton|deepspeed|mamba_ssm|causal_conv1d|vllm"
    r"|torch_scatter|torch_sparse|spconv|transformer_engine|fbgemm)"
)


def _weigh(scene: Scene) -> Weighings:
    heard = statement(scene, WORDING)
    failed = statement(scene, LIBRARY_FAILED)
    better = statement(scene, BETTER)
    if heard is not None and better is None:
        yield from weigh_statement(scene, WORDING)
        yield from first_to_fail(scene)
    elif heard is not None:
        yield quote(6, "The output says", heard)
    elif failed is not None and better is None:
        # a kernel of a library did not come through; its own fault or an earlier kernel's
        yield quote(10, "A library's kernel failed", failed)
    yield from weigh_xids(scene, CAUSE.id)


def _library(frames: tuple[Frame, ...]) -> str:
    for frame in reversed(frames):
        match = LIBRARIES.search(frame.file.replace("\\", "/"))
        if match is not None:
            return match.group(1)
    return ""


def _summary(scene: Scene) -> str:
    frames = scene.origin.frames if scene.origin is not None else ()
    frame, library = user_frame(frames), _library(frames)
    heard = statement(scene, WORDING) or statement(scene, LIBRARY_FAILED)
    says = f" ({short(heard.match.group(0), 60)})" if heard is not None else ""
    place = f"; it was noticed at {frame.where}, which need not be its line" if frame else ""
    return (
        f"A GPU kernel{f' of {library}' if library else ''} of"
        f" {subject(scene)[:1].lower()}{subject(scene)[1:]} went outside its memory{says}{place}"
    )


def _fixes(scene: Scene) -> Fixes:
    library = _library(scene.origin.frames) if scene.origin is not None else ""
    return (
        fix(
            "Find the kernel's own line",
            "CUDA_LAUNCH_BLOCKING=1 with the same batch; compute-sanitizer --tool memcheck"
            " python …",
        ),
        fix(
            "A core dump of the GPU next time",
            "export CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_COREDUMP_FILE=/tmp/gpucore.%p",
        ),
        fix(
            f"A newer {library}, or none" if library else "A newer kernel library, or none",
            (
                f"pip install -U {library.replace('_', '-')}"
                if library
                else (
                    "upgrade flash-attn, bitsandbytes, xformers, apex or triton, whichever is"
                    " in use"
                )
            ),
            "run once with the plain implementation: attn_implementation='eager' or 'sdpa'; without"
            " torch.compile",
        ),
        fix(
            "If it follows one node, look at its GPU",
            "dmesg -T | grep -i xid",
            "nvidia-smi -q -d ECC",
        ),
    )


CAUSE = Cause(
    id="illegal-memory-access",
    title="A GPU kernel went outside its memory",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="the same batch with CUDA_LAUNCH_BLOCKING=1, then compute-sanitizer",
    refines="user-exception",
    accounts_for=("native-crash",),
    wording=f"{WORDING}|{LIBRARY_FAILED}",
)
