"""The weights that are loaded, or saved, are not those of the model.

Names differ by a prefix that a wrapper adds (`module.`, `_orig_mod.`), the model has other layers
or sizes than the one that was saved, or tensors share memory and cannot be written one by one.

It is recognised by torch's "Error(s) in loading state_dict" with its lists of keys, by the words of
safetensors and of distributed checkpoints, and by the measurements `state.*` (missing, unexpected
and differing tensors after a save and a load). A file that cannot be read at all is
`checkpoint-corrupt`; an optimizer's state is `resume-mismatch`.
"""

from __future__ import annotations

import re

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
from trainprobe.causes.statements import statement, text_of
from trainprobe.facts import LogEvent
from trainprobe.signatures.messages import message

WORDING = message("state-dict-mismatch")
MEASURED = "state."
PREFIXES = (
    "_orig_mod.",
    "module.",
    "_fsdp_wrapped_module.",
    "_forward_module.",
    "base_model.model.",
    "model.",
)
MISSING = re.compile(r"Missing key\(s\) in state_dict: ([^\n]{1,4000})")
UNEXPECTED = re.compile(r"Unexpected key\(s\) in state_dict: ([^\n]{1,4000})")
SIZE = re.compile(
    r"size mismatch for ([\w.]+): copying a param with shape (\S.{0,60}?) from checkpoint, the"
    r" shape in current model is (.{1,60}?)\.?$",
    re.MULTILINE,
)
SHARED = """
Save what is shared once
    safetensors.torch.save_model(model, path), or save_pretrained(path, safe_serialization=False)
"""
WRAPPED = """
Save and load without the wrapper
    state = {name.removeprefix('{prefix}'): value for name, value in state.items()}
    save model.module.state_dict() (DDP) or model._orig_mod.state_dict() (compile)
"""
OTHER = """
Make both the same model
    {same}
    vocabulary, number of classes and layers are the usual differences
See what differs
    print(sorted(set(state) ^ set(model.state_dict())))
    strict=False only for keys that you know
"""


def messages_about_keys(scene: Scene) -> str:
    """The text of the exception and of known lines."""
    parts = [text_of(scene.origin)] if scene.origin is not None else []
    parts += [event.line for event in scene.of(LogEvent) if event.event == "state-dict-mismatch"]
    return "\n".join(parts)


def keys(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    """The names in a list of keys."""
    lists = " ".join(pattern.findall(text))
    return tuple(dict.fromkeys(re.findall(r"[\"']([\w.]{1,200})[\"']", lists)))


def _prefix(scene: Scene) -> str:
    """The prefix that one side's names have and the other's do not."""
    text = messages_about_keys(scene)
    missing, unexpected = keys(MISSING, text), keys(UNEXPECTED, text)
    for prefix in PREFIXES:
        in_file = any(name.startswith(prefix) for name in unexpected)
        in_model = any(name.startswith(prefix) for name in missing)
        if in_file != in_model and (missing or prefix == "_orig_mod."):
            return prefix
    return ""


def _difference(scene: Scene) -> str:
    text = messages_about_keys(scene)
    size, missing, unexpected = SIZE.search(text), keys(MISSING, text), keys(UNEXPECTED, text)
    if _prefix(scene):
        return f"the names differ by the prefix {_prefix(scene)}"
    if size is not None:
        name, saved, own = size.groups()
        return f"{name} is {saved} in the checkpoint and {own} in the model"
    parts = [f"{len(missing)} keys are missing, such as {missing[0]}"] if missing else []
    parts += [f"{len(unexpected)} are not known, such as {unexpected[0]}"] if unexpected else []
    found = statement(scene, WORDING)
    return ", ".join(parts) or (short(found.text, 160) if found is not None else "keys differ")


def _summary(scene: Scene) -> str:
    number = worst(scene, MEASURED)
    what = number_text(number) if number is not None else _difference(scene)
    return f"The saved weights are not those of this model: {what}"


def _fixes(scene: Scene) -> Fixes:
    found, prefix = statement(scene, WORDING), _prefix(scene)
    if found is not None and "share memory" in found.text:
        return fixes(SHARED)
    if prefix:
        return fixes(WRAPPED, prefix=prefix)
    same = "build the model with the configuration that was saved beside the checkpoint"
    shapes = SIZE.search(messages_about_keys(scene))
    if shapes is not None and "([0])" in shapes.group(0):
        same = (
            "ZeRO-3 keeps empty parameters: load through model_engine.load_checkpoint or within"
            " deepspeed.zero.GatheredParameters"
        )
    return fixes(OTHER, same=same)


CAUSE = Cause(
    id="state-dict-mismatch",
    title="Saved weights and model do not match",
    weigh=measured_or_stated(MEASURED, WORDING),
    summary=stressed_summary_or(MEASURED, _summary),
    fixes=stressed_or(MEASURED, _fixes),
    ranks=nobody,
    would_settle="the keys and shapes of the file beside those of model.state_dict()",
    refines="user-exception",
    wording=WORDING,
)
