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
from trainprobe.causes.measured import stressed_or, stressed_summary_or, weigh_measures
from trainprobe.causes.phrases import Fixes, fixes, short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, statement, text_of, weigh_statement
from trainprobe.facts import LogEvent
from trainprobe.facts.loss_scales import run_down
from trainprobe.signatures.messages import message

WORDING = message("nan-loss")
MEASURED = "gradient."
FIXES = """
{title}
    {step}
Clip, and warm up
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); a longer warm-up
Find the first one
    torch.autograd.set_detect_anomaly(True); stop where torch.isfinite(loss) is false and save that
        batch
Look at the data
    torch.isfinite(x).all() over the samples; empty targets, divisions by a length of 0, log(0)
"""


def _printed(scene: Scene) -> tuple[LogEvent, ...]:
    """Printed losses that are nan, and loss scales that have run down."""
    return scene.events("nan-printed", "loss-scale-low")


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_measures(scene, MEASURED)
    found, origin = tuple(weigh_statement(scene, WORDING)), scene.origin
    yield from found
    divided = (
        origin is not None
        and origin.type == "ZeroDivisionError"
        and any("apex/amp/scaler.py" in frame.file for frame in origin.frames)
    )
    if divided:
        says = "apex divided by a loss scale that has gone to 0"
        yield weighing(26, "suspects-log", says, origin)
    events = _printed(scene)
    if events:
        times = sum(event.count for event in events)
        says = f"It was printed {times} times before: {short(events[0].line, 120)}"
        yield weighing(10 if found or times < 2 else 13, "suspects-stack", says, *events[:3])
    if fallen := run_down(scene.of(LogEvent)):
        scales = " to ".join(event.captured["scale"] for event in (fallen[0], fallen[-1]))
        says = f"The loss scale only fell, {len(fallen) - 1} times, from {scales}"
        yield weighing(13, "suspects-log", says, fallen[0], fallen[-1])
    if found or divided:
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    found, events = statement(scene, WORDING), _printed(scene)
    if found is None and not events and (fallen := run_down(scene.of(LogEvent))):
        return (
            f"{subject(scene)} may be about to lose its numbers: the loss scale has fallen to"
            f" {fallen[-1].captured['scale']} and never rose"
        )
    what = text_of(scene.origin) if scene.origin else ""
    if found is not None or events:
        what = found.text if found is not None else events[0].line
    lost = f"{subject(scene)} lost its numbers (nan, infinity or a loss scale without room)"
    return f"{lost}: {short(what, 140)}" if what else lost


def _fixes(scene: Scene) -> Fixes:
    found = statement(scene, WORDING)
    if found and ("probability tensor" in found.text or "scale" in found.text.lower()):
        return fixes(FIXES, title="Take bf16 in place of fp16", step="bf16=True, or float32")
    return fixes(FIXES, title="Go slower", step="a tenth of the learning rate")


CAUSE = Cause(
    id="nan-loss",
    title="The loss is no number any more",
    weigh=_weigh,
    summary=stressed_summary_or(MEASURED, _summary),
    fixes=stressed_or(MEASURED, _fixes),
    would_settle="the same batch in float32, with torch.autograd.set_detect_anomaly(True)",
    refines="user-exception",
    wording=WORDING,
)
