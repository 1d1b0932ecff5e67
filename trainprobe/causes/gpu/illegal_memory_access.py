"""A GPU kernel reads or writes outside its memory.

A fused attention, a quantised matrix product, a custom op: the kernel computes a wrong address for some shape. The error is reported at a later call, so the
Python line beside it is often another one, and every library of that process then fails as well.

It is recognised by "an illegal memory access was encountered" and its kin (unspecified launch failure, misaligned address, ROCm's memory access fault), and
by Xid 13 or 31. An assertion of a kernel, an uncorrectable memory error or a lost GPU in the same log is the better name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, user_frame, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short, subject
from trainprobe.causes.xids import weigh_xids
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.stacks.frames import Frame
from trainprobe.waits import SuspectGroup

# CUDA's errors 700, 719, 716, 715 and 718; HIP; ROCr; cuda-gdb.
WORDING = (
    r"illegal memory access (?:was|has been) encountered|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS|hipErrorIllegalAddress|unspecified launch failure"
    r"|cudaErrorLaunchFailure|CUDA_ERROR_LAUNCH_FAILED|hipErrorLaunchFailure|(?:CUDA|HIP) error: misaligned address|cudaErrorMisalignedAddress"
    r"|an illegal instruction was encountered|invalid program counter|Memory access fault by GPU node|CUDA_EXCEPTION_\d"
    r"|HSA_STATUS_ERROR_(?:MEMORY_APERTURE_VIOLATION|EXCEPTION|MEMORY_FAULT)"
)
LIBRARY_FAILED = r"CU(?:BLAS|DNN|SOLVER)_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR)"
BETTER = r"device-side assert triggered|[Uu]ncorrectable (?:ECC|NVLink) error|fallen off the bus|GPU is lost|no kernel image is available"
# Packages whose kernels such reports end at.
LIBRARIES = re.compile(
    r"(flash_attn|xformers|bitsandbytes|apex|triton|deepspeed|mamba_ssm|causal_conv1d|vllm|torch_scatter|torch_sparse|spconv|transformer_engine|fbgemm)"
)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard, failed, better = said(scene, WORDING), said(scene, LIBRARY_FAILED), said(scene, BETTER)
    if heard is not None and better is None:
        yield from spoken(scene, WORDING)
        yield from first_to_fail(scene)
    elif heard is not None:
        yield weighing(6, "suspects-log", f"The output says: {short(heard.text, 120)}", heard.fact)
    elif failed is not None and better is None:  # a kernel of a library did not come through; its own fault or an earlier kernel's
        yield weighing(10, "suspects-log", f"A library's kernel failed: {short(failed.text, 120)}", failed.fact)
    yield from weigh_xids(scene, CAUSE.id)


def _library(frames: tuple[Frame, ...]) -> str:
    for frame in reversed(frames):
        match = LIBRARIES.search(frame.file.replace("\\", "/"))
        if match is not None:
            return match.group(1)
    return ""


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    frames = scene.origin.frames if scene.origin is not None else ()
    frame, library = user_frame(frames), _library(frames)
    heard = said(scene, WORDING) or said(scene, LIBRARY_FAILED)
    says = f" ({short(heard.match.group(0), 60)})" if heard is not None else ""
    place = f"; it was noticed at {frame.where}, which need not be its line" if frame else ""
    return sentence(
        f"A GPU kernel{f' of {library}' if library else ''} of {subject(scene)[:1].lower()}{subject(scene)[1:]} went outside its memory{says}{place}"
    )


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    library = _library(scene.origin.frames) if scene.origin is not None else ""
    return (
        fix(scene, "Find the kernel's own line", "CUDA_LAUNCH_BLOCKING=1 with the same batch; compute-sanitizer --tool memcheck python …"),
        fix(scene, "A core dump of the GPU next time", "export CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_COREDUMP_FILE=/tmp/gpucore.%p"),
        fix(
            scene,
            f"A newer {library}, or none" if library else "A newer kernel library, or none",
            f"pip install -U {library.replace('_', '-')}" if library else "upgrade flash-attn, bitsandbytes, xformers, apex or triton, whichever is in use",
            "run once with the plain implementation: attn_implementation='eager' or 'sdpa'; without torch.compile",
        ),
        fix(scene, "If it follows one node, look at its GPU", "dmesg -T | grep -i xid", "nvidia-smi -q -d ECC"),
    )


CAUSE = Cause(
    id="illegal-memory-access",
    title="A GPU kernel went outside its memory",
    means="A GPU kernel reads or writes outside its memory.",
    telling="That message; the Python line beside it is often another one.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="the same batch with CUDA_LAUNCH_BLOCKING=1, then compute-sanitizer",
    refines="user-exception",
    accounts_for=("native-crash",),
    wording=f"{WORDING}|{LIBRARY_FAILED}",
)
