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
from trainprobe.causes.measured import says, weigh_measured_or_stated, worst
from trainprobe.causes.model_stress import stressed_fixes, stressed_summary
from trainprobe.causes.phrases import Fixes, fix, short
from trainprobe.causes.scene import Scene, Weighings, user_frame
from trainprobe.causes.statements import statement
from trainprobe.signatures.messages import message

_HALF = r"(?:c10::)?(?:Half|BFloat16)\b"
WORDING = message("precision-fault")


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_measured_or_stated(scene, "precision.", WORDING)


def _summary(scene: Scene) -> str:
    if told := stressed_summary(scene.group, "precision."):
        return told
    number, heard = worst(scene, "precision."), statement(scene, WORDING)
    if number is not None:
        return f"Reduced precision leaves its tolerance: {says(number)}"
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    return (
        f"Reduced precision does not work{f' at {frame.where}' if frame else ''}:"
        f" {short(heard.text, 140) if heard is not None else 'types differ'}"
    )


def _fixes(scene: Scene) -> Fixes:
    if found := stressed_fixes(scene, "precision."):
        return found
    heard = statement(scene, WORDING)
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    text = heard.text if heard is not None else ""
    if "not implemented for" in text:
        return (
            fix(
                "Run where that type is supported",
                "model.to('cuda') before the first call, or model.float() on the CPU; bfloat16 has"
                " more CPU operations",
            ),
            fix("Or a newer torch", "half precision on the CPU: most operations since torch 2.2"),
        )
    if "overflow" in text:
        return (
            fix(
                "Mask with what the type can hold",
                f"torch.finfo(x.dtype).min in place of -1e9{f' at {frame.where}' if frame else ''}",
            ),
        )
    if "unscale" in text:
        return (
            fix(
                "Keep parameters in single precision",
                "load the model in float32 (torch_dtype=torch.float32) and let autocast choose, or"
                " train in bf16",
            ),
        )
    return (
        fix(
            "Let autocast choose the types",
            "with torch.autocast('cuda', dtype=torch.bfloat16): around"
            f" {frame.where if frame else 'the forward pass'}",
        ),
        fix(
            "Or bring both to one type",
            "x = x.to(module.weight.dtype); model.to(torch.bfloat16) as a whole, norms and added"
            " layers too",
        ),
    )


CAUSE = Cause(
    id="precision-fault",
    title="Reduced precision overflows or does not fit",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="the same step in float32, and in bf16, module by module",
    refines="user-exception",
    wording=WORDING,
)
