"""DDP sees a parameter's gradient twice in one backward pass.

DistributedDataParallel counts each parameter once per backward pass. Reentrant checkpointing runs a
part of the graph again, with a backward pass of its own; a layer that is used in two checkpoints, a
forward pass of the bare module beside the wrapped one, or two wrappers around shared parameters do
the same.

It is recognised by "Expected to mark a variable ready only once", often with the parameter's index
or name.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import fixes
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import confirmed, stated
from trainprobe.causes.statements import statement, text_of
from trainprobe.signatures.messages import message

WORDING = message("ddp-marked-ready-twice")
PARAMETER = re.compile(
    r"Parameter at index (\d{1,9})(?: with name ([^\s]{1,200}))? has been marked as ready twice"
)
CHECKPOINTS = re.compile(
    r"use_reentrant|gradient[_ ]checkpointing|torch/utils/checkpoint\.py|CheckpointFunction"
)


def _named_parameter(scene: Scene) -> Weighings:
    if name := _parameter(scene):
        yield weighing(3, "source", f"It names the parameter: {name}", scene.origin)


def _checkpoints(scene: Scene) -> Weighings:
    frames = scene.origin.frames if scene.origin is not None else ()
    frame = next((frame for frame in frames if CHECKPOINTS.search(frame.file)), None)
    found = statement(scene, CHECKPOINTS.pattern)
    if frame is not None or found is not None:
        place = f"{frame.name} in {frame.base}" if frame else found.match.group(0) if found else ""
        says = f"Checkpoints run parts of the graph again: {place}"
        yield weighing(3, "suspects-stack", says, scene.origin)


def _parameter(scene: Scene) -> str:
    """`41 (encoder.layer.3.weight)`; empty if no parameter is named."""
    texts = [text_of(exception) for exception in scene.exceptions(scene.suspects)]
    texts += [event.line for event in scene.events("ddp-ready-twice")]
    match = next((found for text in texts if (found := PARAMETER.search(text))), None)
    if match is None:
        return ""
    return f"{match.group(1)} ({match.group(2)})" if match.group(2) else match.group(1)


def _summary(scene: Scene) -> str:
    name = f"parameter {_parameter(scene)}" if _parameter(scene) else "a parameter"
    return f"DDP saw the gradient of {name} twice in one backward pass"


CAUSE = Cause(
    id="ddp-marked-ready-twice",
    title="DDP sees a gradient twice in one backward pass",
    weigh=confirmed(stated(WORDING), _named_parameter, _checkpoints),
    summary=_summary,
    fixes=fixes("""
        Checkpoint without a backward pass of its own
            torch.utils.checkpoint.checkpoint(..., use_reentrant=False)   (torch 1.11 on; the
                default of older code is True)
            model.gradient_checkpointing_enable({"use_reentrant": False}) or
                gradient_checkpointing_kwargs={"use_reentrant": False} in TrainingArguments
                (transformers 4.35 on)
        Or tell DDP that the graph is always the same
            DistributedDataParallel(model, static_graph=True)   (torch 1.11 on), with
                find_unused_parameters=False
        Use each parameter in one forward pass of the wrapper
            no call of model.module beside model(...), one loss.backward() per step, no layer shared
                between two checkpoints
        Let the name be printed
            TORCH_DISTRIBUTED_DEBUG=DETAIL in the environment of the next run
    """),
    ranks=nobody,
    would_settle=(
        "run once without gradient checkpointing, and once with TORCH_DISTRIBUTED_DEBUG=DETAIL,"
        " which prints the name"
    ),
    refines="user-exception",
    accounts_for=("ddp-unused-parameters",),
    wording=WORDING,
)
