"""Apple's MPS backend lacks an operation, a type or memory, or has a defect.

torch on a Mac runs on Metal Performance Shaders. Some operators and all of float64 are not there,
tensors beyond 4 GiB or 2**31 elements abort the process inside Apple's library, and memory ends at
a share of the machine's.

It is recognised by torch's words about the MPS device, by an assertion of MPSNDArray or another of
Apple's classes, and by failed Metal command buffers.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import Fixes, fix, short
from trainprobe.causes.scene import Scene, Weighings, user_frame
from trainprobe.causes.statements import statement, weigh_message
from trainprobe.signatures.messages import message

WORDING = message("mps-backend")
OPERATOR = re.compile(r"operator '([\w:.]+)'")


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_message(scene, WORDING)


def _summary(scene: Scene) -> str:
    heard = statement(scene, WORDING)
    text = heard.text if heard is not None else ""
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    operator = OPERATOR.search(text)
    what = f"has no {operator.group(1)}" if operator else f"failed: {short(text, 140)}"
    return f"torch's MPS backend{f' at {frame.where}' if frame else ''} {what}"


def _fixes(scene: Scene) -> Fixes:
    heard = statement(scene, WORDING)
    text = heard.text if heard is not None else ""
    first = fix(
        "Let missing operators run on the CPU",
        "export PYTORCH_ENABLE_MPS_FALLBACK=1   (before Python starts)",
    )
    if "out of memory" in text or "buffer" in text or "NDArray" in text:
        first = fix(
            "Need less at once",
            "a smaller batch or shorter sequences; PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the"
            " limit and may stall the machine",
        )
    elif "float64" in text:
        first = fix(
            "Use float32",
            "tensor.to(torch.float32) before .to('mps'); torch.set_default_dtype(torch.float32)",
        )
    elif "Placeholder" in text:
        first = fix(
            "Put the inputs on the same device",
            "batch = {k: v.to('mps') for k, v in batch.items()}, and model.to('mps')",
        )
    return (
        first,
        fix("A newer torch and macOS", "pip install -U torch", "sw_vers"),
        fix("Run this part on the CPU", "device = torch.device('cpu')"),
    )


CAUSE = Cause(
    id="mps-backend",
    title="Apple's MPS backend lacks something or failed",
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
