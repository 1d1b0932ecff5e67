"""The loss, or a gradient, is no number any more.

The learning rate is too high, half precision overflows, a sample holds nan, a division by zero in
the loss. Scripts stop at it, loss scalers run out of room, and what is drawn from such
probabilities fails.

It is recognised by the words of scripts, frameworks and torch about nan, infinity and loss scales,
by printed losses that are nan, and by the measurements `gradient.*` of the model's stress test (a
finite loss whose gradients are not). One overflow that a loss scaler only skips is normal and says
nothing.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.measured import weigh_measures
from trainprobe.causes.model_stress import stressed_fixes, stressed_summary
from trainprobe.causes.phrases import Fixes, fix, short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, statement, text_of, weigh_statement
from trainprobe.facts import LogEvent
from trainprobe.signatures.messages import message

WORDING = message("nan-loss")
SCALER = "apex/amp/scaler.py"


def _signs(scene: Scene) -> tuple[LogEvent, ...]:
    """Printed losses that are nan, and loss scales that have run down."""
    return scene.events("nan-printed", "loss-scale-low")


def _scaler(scene: Scene) -> bool:
    origin = scene.origin
    return (
        origin is not None
        and origin.type == "ZeroDivisionError"
        and any(SCALER in frame.file for frame in origin.frames)
    )


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_measures(scene, "gradient.")
    heard = tuple(weigh_statement(scene, WORDING))
    yield from heard
    if _scaler(scene):
        yield weighing(
            26, "suspects-log", "apex divided by a loss scale that has gone to 0", scene.origin
        )
    signs = _signs(scene)
    if signs:
        times = sum(event.count for event in signs)
        says = f"It was printed {times} times before: {short(signs[0].line, 120)}"
        yield weighing(10 if heard or times < 3 else 13, "suspects-stack", says, *signs[:3])
    if heard or _scaler(scene):
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    if told := stressed_summary(scene.group, "gradient."):
        return told
    heard, signs = statement(scene, WORDING), _signs(scene)
    what = ""
    if heard is not None:
        what = short(heard.text, 140)
    elif signs:
        what = short(signs[0].line, 140)
    elif scene.origin:
        what = short(text_of(scene.origin))
    return f"{subject(scene)} lost its numbers (nan, infinity or a loss scale without room)" + (
        f": {what}" if what else ""
    )


def _fixes(scene: Scene) -> Fixes:
    if found := stressed_fixes(scene, "gradient."):
        return found
    heard = statement(scene, WORDING)
    drawn = heard is not None and "probability tensor" in heard.text
    scale = heard is not None and "scale" in heard.text.lower()
    return (
        fix(
            "Take bf16 in place of fp16" if scale or drawn else "Go slower",
            "bf16=True, or float32" if scale or drawn else "a tenth of the learning rate",
        ),
        fix(
            "Clip, and warm up",
            "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); a longer warm-up",
        ),
        fix(
            "Find the first one",
            "torch.autograd.set_detect_anomaly(True); stop where torch.isfinite(loss) is false and"
            " save that batch",
        ),
        fix(
            "Look at the data",
            "torch.isfinite(x).all() over the samples; empty targets, divisions by a length of 0,"
            " log(0)",
        ),
    )


CAUSE = Cause(
    id="nan-loss",
    title="The loss is no number any more",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="the same batch in float32, with torch.autograd.set_detect_anomaly(True)",
    refines="user-exception",
    wording=WORDING,
)
