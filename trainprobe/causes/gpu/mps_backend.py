"""Apple's MPS backend lacks an operation, a type or memory, or has a defect.

torch on a Mac runs on Metal Performance Shaders. Some operators and all of float64 are not there,
tensors beyond 4 GiB or 2**31 elements abort the process inside Apple's library, and memory ends at
a share of the machine's.

A tensor on it cannot be sent to another process either.

It is recognised by torch's words about the MPS device, by an assertion of MPSNDArray or another of
Apple's classes, by failed Metal command buffers, and by a tensor that macOS cannot share between
processes since it is not on the CPU.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import Fixes, fix, short
from trainprobe.causes.scene import Scene
from trainprobe.causes.signs import first_of, quoted, stated
from trainprobe.causes.statements import statement
from trainprobe.signatures.messages import message

WORDING = message("mps-backend")
SHARING = message("mps-backend.sharing")
OPERATOR = re.compile(r"operator '([\w:.]+)'")
# What helps first, by a part of the message.
MEMORY = fix(
    "Need less at once",
    "a smaller batch or shorter sequences; PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the limit and"
    " may stall the machine",
)
FIRST = {
    "out of memory": MEMORY,
    "buffer": MEMORY,
    "NDArray": MEMORY,
    "float64": fix(
        "Use float32",
        "tensor.to(torch.float32) before .to('mps'); torch.set_default_dtype(torch.float32)",
    ),
    "Placeholder": fix(
        "Put the inputs on the same device",
        "batch = {k: v.to('mps') for k, v in batch.items()}, and model.to('mps')",
    ),
    "_share_filename_": fix(
        "Send only tensors on the CPU",
        "no .to('mps') in the dataset and the collator: the training loop moves the batch",
        "or DataLoader(..., num_workers=0); weights for another process: v.cpu() of each",
    ),
    "": fix(
        "Let missing operators run on the CPU",
        "export PYTORCH_ENABLE_MPS_FALLBACK=1   (before Python starts)",
    ),
}


def _text(scene: Scene) -> str:
    found = statement(scene, WORDING) or statement(scene, SHARING)
    return found.text if found is not None else ""


def _summary(scene: Scene) -> str:
    text = _text(scene)
    if "_share_filename_" in text:
        return f"A tensor on Apple's GPU cannot be sent to another process{scene.at_own_line}"
    operator = OPERATOR.search(text)
    what = f"has no {operator.group(1)}" if operator else f"failed: {short(text, 140)}"
    return f"torch's MPS backend{scene.at_own_line} {what}"


def _fixes(scene: Scene) -> Fixes:
    text = _text(scene)
    return (
        next(first for part, first in FIRST.items() if part in text),
        fix("A newer torch and macOS", "pip install -U torch", "sw_vers"),
        fix("Run this part on the CPU", "device = torch.device('cpu')"),
    )


CAUSE = Cause(
    id="mps-backend",
    title="Apple's MPS backend lacks something or failed",
    weigh=first_of(
        stated(WORDING),
        quoted(13, "A tensor that is not on the CPU is sent to another process", SHARING),
    ),
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="the same line with device='cpu'",
    refines="user-exception",
    accounts_for=("native-crash", "cuda-oom"),
    wording=f"{WORDING}|{SHARING}",
)
