"""This build of torch, or of an extension, has no code for this GPU.

A wheel carries machine code for a list of architectures. A card newer than the wheel, or one so old
that it was dropped, finds none: the first kernel fails. On AMD it is the list of gfx names.

It is recognised by "no kernel image is available" (HIP: "invalid device function"), and by torch's
warning at start with the list of what was built. The warning without a CUDA error after it says
little, unless the text ends with it.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import fixes, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import all_of, first_of, stated
from trainprobe.causes.statements import statement
from trainprobe.facts import LogEvent, LogJob, LogProgress
from trainprobe.signatures.messages import message

WORDING = message("no-kernel-image")
WARNED = message("no-kernel-image.warned")
GPU_SPEAKS = message("no-kernel-image.gpu-speaks")
CAPABILITY = re.compile(r"(?:capability |\(CC\) )(sm_\d{1,4}|\d{1,2}\.\d)")
NEAR = 4  # lines: the warning itself has as many
BUILT = r"supports CUDA capabilities ((?:sm_\d{1,4} ?){1,20})"


def _failed_after_warning(scene: Scene) -> Weighings:
    warned, error = statement(scene, WARNED), statement(scene, GPU_SPEAKS)
    if warned is not None and error is not None and statement(scene, WORDING) is None:
        says = f"torch warned that it was not built for this GPU, then: {short(error.text, 100)}"
        yield weighing(13, "suspects-log", says, warned.fact, error.fact)


def _ends_with_warning(scene: Scene) -> Weighings:
    """Such a job fails at its first kernel: where the text ends with that, there it failed."""
    job = scene.one(LogJob)
    warned = [event for event in scene.of(LogEvent) if event.event == "sm-not-supported"]
    if job is None or not warned or not job.ends or scene.of(LogProgress):
        return
    if job.last_place - (warned[-1].place or 0) <= NEAR:
        says = f"The log ends with the warning of torch: {short(warned[0].line, 120)}"
        yield weighing(13, "suspects-log", says, warned[0])


def _warned(scene: Scene) -> Weighings:
    warned = statement(scene, WARNED)
    if warned is not None:
        says = f"torch warned at start: {short(warned.text, 120)}"
        yield weighing(6, "environment-and-limits", says, warned.fact)


def _summary(scene: Scene) -> str:
    warned, built = statement(scene, WARNED), statement(scene, BUILT)
    capability = CAPABILITY.search(warned.text) if warned is not None else None
    gpu = f" ({capability.group(1)})" if capability else ""
    has = f"; it was built for {' '.join(built.match.group(1).split())}" if built else ""
    return f"The code that runs{scene.at_own_line} has no kernel for this GPU{gpu}{has}"


CAUSE = Cause(
    id="no-kernel-image",
    title="This build has no code for this GPU",
    weigh=first_of(_failed_after_warning, all_of(stated(WORDING), _ends_with_warning, _warned)),
    summary=_summary,
    fixes=fixes("""
        See both lists
            python -c 'import torch; print(torch.version.cuda, torch.cuda.get_arch_list(),
                torch.cuda.get_device_capability())'
        Install the build for this GPU
            pip install --force-reinstall torch --index-url
                https://download.pytorch.org/whl/cuXYZ   (as pytorch.org says)
        If an extension fails and torch does not, build it for this GPU
            TORCH_CUDA_ARCH_LIST='X.Y' pip install --no-build-isolation --force-reinstall …
        On AMD
            HSA_OVERRIDE_GFX_VERSION=… as a bridge; a build with your gfx in PYTORCH_ROCM_ARCH
    """),
    ranks=nobody,
    would_settle="torch.cuda.get_arch_list() beside torch.cuda.get_device_capability()",
    refines="user-exception",
    accounts_for=("native-crash", "cuda-oom", "illegal-memory-access"),
    wording=WORDING,
)
