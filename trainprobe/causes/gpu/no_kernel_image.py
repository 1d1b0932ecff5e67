"""This build of torch, or of an extension, has no code for this GPU.

A wheel carries machine code for a list of architectures. A card newer than the wheel, or one so old
that it was dropped, finds none: the first kernel fails. On AMD it is the list of gfx names.

It is recognised by "no kernel image is available" (HIP: "invalid device function"), and by torch's
warning at start with the list of what was built. The warning without a CUDA error after it says
little.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import fix, short
from trainprobe.causes.scene import Scene, Weighings, user_frame, weighing
from trainprobe.causes.statements import first_to_fail, statement, weigh_statement
from trainprobe.signatures.messages import message

WORDING = message("no-kernel-image")
WARNED = message("no-kernel-image.warned")
GPU_SPEAKS = message("no-kernel-image.gpu-speaks")
CAPABILITY = re.compile(r"(?:capability |\(CC\) )(sm_\d{1,4}|\d{1,2}\.\d)")
BUILT = re.compile(r"supports CUDA capabilities ((?:sm_\d{1,4} ?){1,20})")


def _weigh(scene: Scene) -> Weighings:
    heard, warned = statement(scene, WORDING), statement(scene, WARNED)
    if heard is not None:
        yield from weigh_statement(scene, WORDING)
        yield from first_to_fail(scene)
        if warned is not None:
            says = f"torch warned at start: {short(warned.text, 120)}"
            yield weighing(6, "environment-and-limits", says, warned.fact)
    elif warned is not None:
        speaks = statement(scene, GPU_SPEAKS)
        if speaks is not None:
            says = (
                "torch warned that the GPU is not one it was built for, then:"
                f" {short(speaks.text, 100)}"
            )
            yield weighing(13, "suspects-log", says, warned.fact, speaks.fact)
        else:
            says = f"torch warned at start: {short(warned.text, 120)}"
            yield weighing(6, "environment-and-limits", says, warned.fact)


def _summary(scene: Scene) -> str:
    warned, built = statement(scene, WARNED), statement(scene, BUILT.pattern)
    capability = CAPABILITY.search(warned.text) if warned is not None else None
    gpu = f" ({capability.group(1)})" if capability else ""
    has = (
        f"; it was built for {' '.join(built.match.group(1).split())}" if built is not None else ""
    )
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    return (
        f"The code that runs{f' at {frame.where}' if frame else ''} has no kernel for this"
        f" GPU{gpu}{has}"
    )


CAUSE = Cause(
    id="no-kernel-image",
    title="This build has no code for this GPU",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=(
        fix(
            "See both lists",
            "python -c 'import torch; print(torch.version.cuda, torch.cuda.get_arch_list(),"
            " torch.cuda.get_device_capability())'",
        ),
        fix(
            "Install the build for this GPU",
            "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cuXYZ"
            "   (as pytorch.org says)",
        ),
        fix(
            "If an extension fails and torch does not, build it for this GPU",
            "TORCH_CUDA_ARCH_LIST='X.Y' pip install --no-build-isolation --force-reinstall …",
        ),
        fix(
            "On AMD",
            "HSA_OVERRIDE_GFX_VERSION=… as a bridge; a build with your gfx in PYTORCH_ROCM_ARCH",
        ),
    ),
    ranks=nobody,
    would_settle="torch.cuda.get_arch_list() beside torch.cuda.get_device_capability()",
    refines="user-exception",
    accounts_for=("native-crash", "cuda-oom", "illegal-memory-access"),
    wording=WORDING,
)
