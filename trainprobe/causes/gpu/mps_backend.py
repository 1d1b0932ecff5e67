"""Apple's MPS backend lacks an operation, a type or memory, or has a defect.

torch on a Mac runs on Metal Performance Shaders. Some operators and all of float64 are not there, tensors beyond 4 GiB or 2**31 elements abort the process
inside Apple's library, and memory ends at a share of the machine's.

It is recognised by torch's words about the MPS device, by an assertion of MPSNDArray or another of Apple's classes, and by failed Metal command buffers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, user_frame
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# aten/src/ATen/mps and native/mps of torch 1.12 to 2.13; Apple's frameworks of macOS 12 to 15.
WORDING = (
    r"not (?:currently |current )?implemented for (?:the )?MPS device|MPS backend out of memory|Placeholder (?:storage|tensor).{0,40}(?:allocated on MPS|is empty)"
    r"|Cannot convert a MPS Tensor to float64|MPS framework doesn't support|MPS(?:NDArray|Graph|Kernel|Matrix|TemporaryNDArray|CommandBuffer)\w{0,20}"
    r"(?:\.mm?)?.{0,200}(?:failed assertion|Error|error:)|MetalPerformanceShaders.{0,200}failed assertion|not (?:currently )?support(?:ed)?(?: on| for| by)?(?: the)? MPS\b"
    r"|MPS (?:device|backend) (?:does not|doesn't) support|kIOGPUCommandBufferCallbackError|type MPSFloat|\bInvalid buffer size: [\d.]+ [KMGT]?i?B"
    r"|to the MPS backend but it does not|supported at the MPS device|MPS does not support|MPS: input sizes must be|on MPS for pre MacOS|\(mpsFileLoc\)"
    r"|LLVM ERROR: Failed to infer result type|not linked with support for mps|object on MPS device but|The MPS backend is supported on MacOS"
    r"|PYTORCH_ENABLE_MPS_FALLBACK=1|unsupported autocast device_type 'mps'|MPS: [Uu]nsupported"
)
OPERATOR = re.compile(r"operator '([\w:.]+)'")


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    if said(scene, WORDING) is not None:
        yield from spoken(scene, WORDING)
        yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    text = heard.text if heard is not None else ""
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    operator = OPERATOR.search(text)
    what = f"has no {operator.group(1)}" if operator else f"failed: {short(text, 140)}"
    return sentence(f"torch's MPS backend{f' at {frame.where}' if frame else ''} {what}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    text = heard.text if heard is not None else ""
    first = fix(scene, "Let missing operators run on the CPU", "export PYTORCH_ENABLE_MPS_FALLBACK=1   (before Python starts)")
    if "out of memory" in text or "buffer" in text or "NDArray" in text:
        first = fix(
            scene, "Need less at once", "a smaller batch or shorter sequences; PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the limit and may stall the machine"
        )
    elif "float64" in text:
        first = fix(scene, "Use float32", "tensor.to(torch.float32) before .to('mps'); torch.set_default_dtype(torch.float32)")
    elif "Placeholder" in text:
        first = fix(scene, "Put the inputs on the same device", "batch = {k: v.to('mps') for k, v in batch.items()}, and model.to('mps')")
    return (
        first,
        fix(scene, "A newer torch and macOS", "pip install -U torch", "sw_vers"),
        fix(scene, "Run this part on the CPU", "device = torch.device('cpu')"),
    )


CAUSE = Cause(
    id="mps-backend",
    title="Apple's MPS backend lacks something or failed",
    means="Apple's MPS backend lacks an operation or has a defect.",
    telling="An MPS assertion, or an operator that is not implemented.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="the same line with device='cpu'",
    refines="user-exception",
    accounts_for=("native-crash", "cuda-oom"),
    wording=WORDING,
)
