"""A reduced precision overflows, is not supported, or meets another type where it should not.

Half precision ends at 65504, and a mask of -1e9 or a large sum does not fit. Modules that stay in single precision meet activations in half;
parameters that are half themselves cannot be scaled; an operation has no half version on the CPU.

It is recognised by torch's words about Half and BFloat16, by the words of gradient scaling, and by the measurements `precision.*` (the first
module beyond tolerance under autocast). Types that have nothing to do with reduced precision (Long, Double) belong to `user-exception`, and a loss
that became nan belongs to `nan-loss`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import says, weigh_measured_and_said, worst
from trainprobe.causes.scene import Scene, user_frame
from trainprobe.causes.spoken import said
from trainprobe.causes.stressed import stressed_fixes, stressed_summary
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

_HALF = r"(?:c10::)?(?:Half|BFloat16)\b"
# aten's type checks of torch 1.8 to 2.13, torch/amp/grad_scaler.py, flash-attn.
WORDING = (
    rf"expected scalar type {_HALF} but found|expected scalar type \w+ but found {_HALF}|[\"'] not implemented for ['\"](?:Half|BFloat16)['\"]"
    rf"|must have the same dtype,? but got .{{0,80}}(?:{_HALF}|half\b|bfloat16)|must have the same dtype, but got {_HALF}"
    rf"|to have the same dtype, but got query\.dtype|Input type \(.{{0,40}}Half\w*\) and (?:weight|bias) type|and (?:weight|bias) type \(.{{0,40}}Half\w*\) should be the same"
    rf"|Input type \({_HALF}\) and|(?:weight|bias) type \({_HALF}\) should be|cannot be converted to type (?:at|c10)::(?:Half|BFloat16) without overflow"
    r"|Attempting to unscale FP16 gradients|FlashAttention only supports? (?:fp16|half)|[Ff]lash[ _]?[Aa]ttention.{0,60}only support.{0,20}(?:fp16|bf16|half)"
    rf"|expected m1 and m2 to have the same dtype, but got: .{{0,40}}(?:{_HALF})|Index put requires the source and destination dtypes match, got {_HALF}"
    rf"|destination dtypes match, got \w+ for the destination and {_HALF}|[Ee]xpected .{{0,40}}dtype.{{0,40}} (?:torch\.)?(?:float16|bfloat16)"
)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from weigh_measured_and_said(scene, "precision.", WORDING)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    if told := stressed_summary(group, "precision."):
        return told
    scene = Scene(facts, group)
    number, heard = worst(scene, "precision."), said(scene, WORDING)
    if number is not None:
        return sentence(f"Reduced precision leaves its tolerance: {says(number)}")
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    return sentence(
        f"Reduced precision does not work{f' at {frame.where}' if frame else ''}: {short(heard.text, 140) if heard is not None else 'types differ'}"
    )


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    if found := stressed_fixes(scene, "precision."):
        return found
    heard = said(scene, WORDING)
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    text = heard.text if heard is not None else ""
    if "not implemented for" in text:
        return (
            fix(
                scene,
                "Run where that type is supported",
                "model.to('cuda') before the first call, or model.float() on the CPU; bfloat16 has more CPU operations",
            ),
            fix(scene, "Or a newer torch", "half precision on the CPU: most operations since torch 2.2"),
        )
    if "overflow" in text:
        return (fix(scene, "Mask with what the type can hold", f"torch.finfo(x.dtype).min in place of -1e9{f' at {frame.where}' if frame else ''}"),)
    if "unscale" in text:
        return (
            fix(
                scene, "Keep parameters in single precision", "load the model in float32 (torch_dtype=torch.float32) and let autocast choose, or train in bf16"
            ),
        )
    return (
        fix(
            scene, "Let autocast choose the types", f"with torch.autocast('cuda', dtype=torch.bfloat16): around {frame.where if frame else 'the forward pass'}"
        ),
        fix(scene, "Or bring both to one type", "x = x.to(module.weight.dtype); model.to(torch.bfloat16) as a whole, norms and added layers too"),
    )


CAUSE = Cause(
    id="precision-fault",
    title="Reduced precision overflows or does not fit",
    means="Reduced precision overflows, leaves its tolerance, or meets another type where it should not.",
    telling="Half or BFloat16 in torch's words about types or overflow; the first module beyond tolerance under autocast.",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="the same step in float32, and in bf16, module by module",
    refines="user-exception",
    wording=WORDING,
)
