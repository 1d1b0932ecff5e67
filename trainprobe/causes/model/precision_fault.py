"""A reduced precision overflows, is not supported, or meets another type where it should not.

Half precision ends at 65504, and a mask of -1e9 or a large sum does not fit. Modules that stay in
single precision meet activations in half; parameters that are half themselves cannot be scaled; an
operation has no half version on the CPU.

It is recognised by torch's words about Half and BFloat16, by the words of gradient scaling, and by
the measurements `precision.*` (the first module beyond tolerance under autocast). Types that have
nothing to do with reduced precision (Long, Double) belong to `user-exception`, and a loss that
became nan belongs to `nan-loss`.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import (
    measured_or_stated,
    number_text,
    stressed_or,
    stressed_summary_or,
    worst,
)
from trainprobe.causes.phrases import Fixes, fixes, short
from trainprobe.causes.scene import Scene
from trainprobe.causes.statements import statement
from trainprobe.signatures.messages import message

WORDING = message("precision-fault")
MEASURED = "precision."
# By a part of the message.
FIXES = {
    "not implemented for": """
        Run where that type is supported
            model.to('cuda') before the first call, or model.float() on the CPU; bfloat16 has more
                CPU operations
        Or a newer torch
            half precision on the CPU: most operations since torch 2.2
    """,
    "overflow": """
        Mask with what the type can hold
            torch.finfo(x.dtype).min in place of -1e9{at}
    """,
    "unscale": """
        Keep parameters in single precision
            load the model in float32 (torch_dtype=torch.float32) and let autocast choose, or train
                in bf16
    """,
    "": """
        Let autocast choose the types
            with torch.autocast('cuda', dtype=torch.bfloat16): around {line}
        Or bring both to one type
            x = x.to(module.weight.dtype); model.to(torch.bfloat16) as a whole, norms and added
                layers too
    """,
}


def _summary(scene: Scene) -> str:
    number, found = worst(scene, MEASURED), statement(scene, WORDING)
    if number is not None:
        return f"Reduced precision leaves its tolerance: {number_text(number)}"
    what = short(found.text, 140) if found is not None else "types differ"
    return f"Reduced precision does not work{scene.at_own_line}: {what}"


def _fixes(scene: Scene) -> Fixes:
    found, frame = statement(scene, WORDING), scene.own_frame
    printed = found.text if found is not None else ""
    text = next(text for part, text in FIXES.items() if part in printed)
    line = frame.where if frame is not None else "the forward pass"
    return fixes(text, at=scene.at_own_line, line=line)


CAUSE = Cause(
    id="precision-fault",
    title="Reduced precision overflows or does not fit",
    modes=("crash", "check"),
    weigh=measured_or_stated(MEASURED, WORDING),
    summary=stressed_summary_or(MEASURED, _summary),
    fixes=stressed_or(MEASURED, _fixes),
    ranks=nobody,
    would_settle="the same step in float32, and in bf16, module by module",
    refines="user-exception",
    wording=WORDING,
)
