"""This build of torch, or of an extension, has no code for this GPU.

A wheel carries machine code for a list of architectures. A card newer than the wheel, or one so old that it was dropped, finds none: the first kernel fails.
On AMD it is the list of gfx names.

It is recognised by "no kernel image is available" (HIP: "invalid device function"), and by torch's warning at start with the list of what was built. The
warning without a CUDA error after it says little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, user_frame, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# CUDA's errors 209, 98 and 200, and HIP's twins.
WORDING = (
    r"no kernel image is available for execution|cudaErrorNoKernelImageForDevice|CUDA_ERROR_NO_BINARY_FOR_GPU|hipErrorNoBinaryForGpu"
    r"|(?:CUDA|HIP) [Ee]rror(?: ?\([^)\n]{1,200}\))?: (?:invalid device function|device kernel image is invalid)|(?:hip|cuda)ErrorInvalidDeviceFunction|HSA_STATUS_ERROR_INVALID_ISA"
    r"|rocBLAS error: Cannot read .{1,200}TensileLibrary.{1,120}GPU arch"
)
WARNED = (
    r"is not compatible with the current PyTorch installation|no longer supports this GPU because it is too old|cuda capability supported by this"
    r"|which is of compute capability \(CC\)|which requires CUDA_VERSION >="
)
GPU_SPEAKS = r"CUDA error|CUBLAS_STATUS|CUDNN_STATUS|cuDNN error|HIP error|Triton Error|FlashAttention only supports"
CAPABILITY = re.compile(r"(?:capability |\(CC\) )(sm_\d{1,4}|\d{1,2}\.\d)")
BUILT = re.compile(r"supports CUDA capabilities ((?:sm_\d{1,4} ?){1,20})")


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard, warned = said(scene, WORDING), said(scene, WARNED)
    if heard is not None:
        yield from spoken(scene, WORDING)
        yield from first_to_fail(scene)
        if warned is not None:
            yield weighing(6, "environment-and-limits", f"torch warned at start: {short(warned.text, 120)}", warned.fact)
    elif warned is not None:
        speaks = said(scene, GPU_SPEAKS)
        if speaks is not None:
            yield weighing(
                13, "suspects-log", f"torch warned that the GPU is not one it was built for, then: {short(speaks.text, 100)}", warned.fact, speaks.fact
            )
        else:
            yield weighing(6, "environment-and-limits", f"torch warned at start: {short(warned.text, 120)}", warned.fact)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    warned, built = said(scene, WARNED), said(scene, BUILT.pattern)
    capability = CAPABILITY.search(warned.text) if warned is not None else None
    gpu = f" ({capability.group(1)})" if capability else ""
    has = f"; it was built for {' '.join(built.match.group(1).split())}" if built is not None else ""
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    return sentence(f"The code that runs{f' at {frame.where}' if frame else ''} has no kernel for this GPU{gpu}{has}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(
            scene,
            "See both lists",
            "python -c 'import torch; print(torch.version.cuda, torch.cuda.get_arch_list(), torch.cuda.get_device_capability())'",
        ),
        fix(
            scene,
            "Install the build for this GPU",
            "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cuXYZ   (as pytorch.org says)",
        ),
        fix(
            scene,
            "If an extension fails and torch does not, build it for this GPU",
            "TORCH_CUDA_ARCH_LIST='X.Y' pip install --no-build-isolation --force-reinstall …",
        ),
        fix(scene, "On AMD", "HSA_OVERRIDE_GFX_VERSION=… as a bridge; a build with your gfx in PYTORCH_ROCM_ARCH"),
    )


CAUSE = Cause(
    id="no-kernel-image",
    title="This build has no code for this GPU",
    means="This build of torch has no code for this GPU.",
    telling="No kernel image is available, beside the list of architectures in the build.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="torch.cuda.get_arch_list() beside torch.cuda.get_device_capability()",
    refines="user-exception",
    accounts_for=("native-crash", "cuda-oom", "illegal-memory-access"),
    wording=WORDING,
)
