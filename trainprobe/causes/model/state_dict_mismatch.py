"""The weights that are loaded, or saved, are not those of the model.

Names differ by a prefix that a wrapper adds (`module.`, `_orig_mod.`), the model has other layers or sizes than the one that was saved, or
tensors share memory and cannot be written one by one.

It is recognised by torch's "Error(s) in loading state_dict" with its lists of keys, by the words of safetensors and of distributed checkpoints, and
by the measurements `state.*` (missing, unexpected and differing tensors after a save and a load). A file that cannot be read at
all is `checkpoint-corrupt`; an optimizer's state is `resume-mismatch`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import says, weigh_measured_and_said, worst
from trainprobe.causes.scene import Scene
from trainprobe.causes.spoken import said, text_of
from trainprobe.causes.stressed import stressed_fixes, stressed_summary
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, LogEvent
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/nn/modules/module.py, torch/distributed/checkpoint, transformers/utils/loading_report.py and modeling_utils.py, safetensors/torch.py.
WORDING = (
    r"Error\(s\) in loading state_dict for|(?:Missing|Unexpected) key\(s\) in state_dict|size mismatch for [\w.]+: copying a param"
    r"|Missing key in checkpoint state_dict|Size mismatch between saved .{0,200} and current|You set `?ignore_mismatched_sizes`? to `?False"
    r"|Some tensors share memory, this will lead to duplicate memory|Error while trying to find names to remove to save state dict"
    r"|KeyError: .{0,2}(?:missing|unexpected) keys? .{0,200}in state_dict|unexpected key .{0,120} in source state_dict|The model and loaded state dict do not match exactly|Trying to set a tensor of shape .{0,160}this looks incorrect"
)
PREFIXES = ("_orig_mod.", "module.", "_fsdp_wrapped_module.", "_forward_module.", "base_model.model.", "model.")
MISSING = re.compile(r"Missing key\(s\) in state_dict: ([^\n]{1,4000})")
UNEXPECTED = re.compile(r"Unexpected key\(s\) in state_dict: ([^\n]{1,4000})")
SIZE = re.compile(
    r"size mismatch for ([\w.]+): copying a param with shape (\S.{0,60}?) from checkpoint, the shape in current model is (.{1,60}?)\.?$", re.MULTILINE
)


def words(scene: Scene) -> str:
    """All that was said of keys: by the exception, and in known lines."""
    parts = [text_of(scene.origin)] if scene.origin is not None else []
    parts += [event.line for event in scene.facts.of(LogEvent, cell=scene.cell) if event.event == "state-dict-mismatch"]
    return "\n".join(parts)


def keys(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    """The names in a list of keys."""
    return tuple(dict.fromkeys(re.findall(r"[\"']([\w.]{1,200})[\"']", " ".join(pattern.findall(text)))))


def prefix(scene: Scene) -> str:
    """The prefix that one side's names have and the other's do not."""
    text = words(scene)
    missing, unexpected = keys(MISSING, text), keys(UNEXPECTED, text)
    for one in PREFIXES:
        if any(name.startswith(one) for name in unexpected) != any(name.startswith(one) for name in missing) and (missing or one == "_orig_mod."):
            return one
    return ""


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from weigh_measured_and_said(scene, "state.", WORDING)


def _what(scene: Scene) -> str:
    text = words(scene)
    size, missing, unexpected = SIZE.search(text), keys(MISSING, text), keys(UNEXPECTED, text)
    if prefix(scene):
        return f"the names differ by the prefix {prefix(scene)}"
    if size is not None:
        return f"{size.group(1)} is {size.group(2)} in the checkpoint and {size.group(3)} in the model"
    parts = [f"{len(missing)} keys are missing, such as {missing[0]}"] if missing else []
    parts += [f"{len(unexpected)} are not known, such as {unexpected[0]}"] if unexpected else []
    heard = said(scene, WORDING)
    return ", ".join(parts) or (short(heard.text, 160) if heard is not None else "keys differ")


def _summary(facts: Facts, group: SuspectGroup) -> str:
    number = worst(Scene(facts, group), "state.")
    other = sentence(f"The saved weights are not those of this model: {says(number) if number is not None else _what(Scene(facts, group))}")
    return stressed_summary(group, "state.") or other


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    if found := stressed_fixes(scene, "state."):
        return found
    one, heard = prefix(scene), said(scene, WORDING)
    if heard is not None and "share memory" in heard.text:
        return (fix(scene, "Save what is shared once", "safetensors.torch.save_model(model, path), or save_pretrained(path, safe_serialization=False)"),)
    if one:
        strip = f"state = {{name.removeprefix('{one}'): value for name, value in state.items()}}"
        return (fix(scene, "Save and load without the wrapper", strip, "save model.module.state_dict() (DDP) or model._orig_mod.state_dict() (compile)"),)
    shapes = SIZE.search(words(scene))
    own = "build the model with the configuration that was saved beside the checkpoint"
    if shapes is not None and "([0])" in shapes.group(0):
        own = "ZeRO-3 keeps empty parameters: load through model_engine.load_checkpoint or within deepspeed.zero.GatheredParameters"
    return (
        fix(scene, "Make both the same model", own, "vocabulary, number of classes and layers are the usual differences"),
        fix(scene, "See what differs", "print(sorted(set(state) ^ set(model.state_dict())))", "strict=False only for keys that you know"),
    )


CAUSE = Cause(
    id="state-dict-mismatch",
    title="Saved weights and model do not match",
    means="Save and load do not give the same model: keys or sizes differ.",
    telling="Error(s) in loading state_dict, with missing, unexpected or differing keys; tensors that share memory.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="the keys and shapes of the file beside those of model.state_dict()",
    refines="user-exception",
    wording=WORDING,
)
