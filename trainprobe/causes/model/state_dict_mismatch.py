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
from trainprobe.causes.measured import says, weigh_measured_or_stated, worst
from trainprobe.causes.model_stress import stressed_fixes, stressed_summary
from trainprobe.causes.phrases import Fixes, fix, sentence, short
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.statements import statement, text_of
from trainprobe.facts import LogEvent
from trainprobe.signatures.messages import message

WORDING = message("state-dict-mismatch")
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


def words(scene: Scene) -> str:
    """All that was said of keys: by the exception, and in known lines."""
    parts = [text_of(scene.origin)] if scene.origin is not None else []
    parts += [event.line for event in scene.of(LogEvent) if event.event == "state-dict-mismatch"]
    return "\n".join(parts)


def keys(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    """The names in a list of keys."""
    return tuple(
        dict.fromkeys(re.findall(r"[\"']([\w.]{1,200})[\"']", " ".join(pattern.findall(text))))
    )


def prefix(scene: Scene) -> str:
    """The prefix that one side's names have and the other's do not."""
    text = words(scene)
    missing, unexpected = keys(MISSING, text), keys(UNEXPECTED, text)
    for one in PREFIXES:
        if any(name.startswith(one) for name in unexpected) != any(
            name.startswith(one) for name in missing
        ) and (missing or one == "_orig_mod."):
            return one
    return ""


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_measured_or_stated(scene, "state.", WORDING)


def _what(scene: Scene) -> str:
    text = words(scene)
    size, missing, unexpected = SIZE.search(text), keys(MISSING, text), keys(UNEXPECTED, text)
    if prefix(scene):
        return f"the names differ by the prefix {prefix(scene)}"
    if size is not None:
        return (
            f"{size.group(1)} is {size.group(2)} in the checkpoint and {size.group(3)} in the model"
        )
    parts = [f"{len(missing)} keys are missing, such as {missing[0]}"] if missing else []
    parts += [f"{len(unexpected)} are not known, such as {unexpected[0]}"] if unexpected else []
    heard = statement(scene, WORDING)
    return ", ".join(parts) or (short(heard.text, 160) if heard is not None else "keys differ")


def _summary(scene: Scene) -> str:
    number = worst(scene, "state.")
    other = sentence(
        "The saved weights are not those of this model:"
        f" {says(number) if number is not None else _what(scene)}"
    )
    return stressed_summary(scene.group, "state.") or other


def _fixes(scene: Scene) -> Fixes:
    if found := stressed_fixes(scene, "state."):
        return found
    one, heard = prefix(scene), statement(scene, WORDING)
    if heard is not None and "share memory" in heard.text:
        return (
            fix(
                "Save what is shared once",
                "safetensors.torch.save_model(model, path), or save_pretrained(path,"
                " safe_serialization=False)",
            ),
        )
    if one:
        strip = f"state = {{name.removeprefix('{one}'): value for name, value in state.items()}}"
        return (
            fix(
                "Save and load without the wrapper",
                strip,
                "save model.module.state_dict() (DDP) or model._orig_mod.state_dict() (compile)",
            ),
        )
    shapes = SIZE.search(words(scene))
    own = "build the model with the configuration that was saved beside the checkpoint"
    if shapes is not None and "([0])" in shapes.group(0):
        own = (
            "ZeRO-3 keeps empty parameters: load through model_engine.load_checkpoint or within"
            " deepspeed.zero.GatheredParameters"
        )
    return (
        fix(
            "Make both the same model",
            own,
            "vocabulary, number of classes and layers are the usual differences",
        ),
        fix(
            "See what differs",
            "print(sorted(set(state) ^ set(model.state_dict())))",
            "strict=False only for keys that you know",
        ),
    )


CAUSE = Cause(
    id="state-dict-mismatch",
    title="Saved weights and model do not match",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="the keys and shapes of the file beside those of model.state_dict()",
    refines="user-exception",
    wording=WORDING,
)
