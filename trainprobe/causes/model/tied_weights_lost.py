"""Weights that are meant to be one have become two, or none.

The output layer of many language models is the table of its input. A load, a wrapper or a move to another device can part them: the head is then
new and random, or a checkpoint lacks it.

It is recognised by a checkpoint in which a head is the only missing key, by the notice that such a head was newly initialised, by the words
about tying of accelerate, and by the measurements `tied.*` (storage of tied weights after init, load, wrapping and a step).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import says, weigh_measures, worst
from trainprobe.causes.model.state_dict_mismatch import MISSING, UNEXPECTED, keys, words
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.stressed import stressed_fixes, stressed_summary
from trainprobe.causes.words import fix, listed, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

HEADS = re.compile(
    r"(?:^|\.)(?:lm_head|embed_out|output_projection|cls\.predictions\.decoder|generator_lm_head|decoder\.output_projection|embed_tokens|shared)\.(?:weight|bias)$"
)
# accelerate/utils/modeling.py, transformers/modeling_utils.py of 4.20 to 5.x, transformers/trainer.py.
WORDING = (
    r"The model weights are not tied\. Please use the `?tie_weights|[Tt]ied (?:parameters|weights) .{0,80}(?:on different devices|not tied|were untied|are broken)"
    r"|newly initialized: \[(?:'[\w.]*(?:lm_head|embed_out|output_projection|predictions\.decoder)[\w.]*'(?:, )?){1,4}\]"
)
SHARED = r"Some tensors share memory, this will lead to duplicate memory"


def _missing_heads(scene: Scene) -> tuple[str, ...]:
    """The missing keys where all of them are heads that are tied to something else, and nothing else is wrong."""
    text = words(scene)
    missing = keys(MISSING, text)
    return missing if missing and not keys(UNEXPECTED, text) and "size mismatch for" not in text and all(HEADS.search(name) for name in missing) else ()


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from weigh_measures(scene, "tied.")
    heads, heard, shared = _missing_heads(scene), tuple(spoken(scene, WORDING)), said(scene, SHARED)
    yield from heard
    if heads:
        yield weighing(26, "suspects-log", f"The only keys that are missing are tied ones: {listed(heads)}", scene.origin, *scene.events("state-dict-mismatch"))
        yield weighing(10, "source", "A tied weight is saved once, under the name of the other", scene.origin, *scene.events("state-dict-mismatch"))
    elif shared is not None and not heard:  # they are still one; it is the save that cannot write them
        yield weighing(6, "suspects-log", f"Weights that are one cannot be saved one by one: {short(shared.text, 120)}", shared.fact)
    if heads or heard:
        yield from first_to_fail(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    if told := stressed_summary(group, "tied."):
        return told
    scene = Scene(facts, group)
    number, heads, heard = worst(scene, "tied."), _missing_heads(scene), said(scene, WORDING) or said(scene, SHARED)
    what = says(number) if number is not None else f"{listed(heads)} is missing" if heads else short(heard.text, 160) if heard is not None else "they are two"
    return sentence(f"Weights that should be one are not shared any more: {what}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    if found := stressed_fixes(scene, "tied."):
        return found
    return (
        fix(scene, "Tie after loading and before wrapping", "model.tie_weights(), then FSDP or DDP", "config.tie_word_embeddings as it was when it was saved"),
        fix(scene, "Check that they are one", "model.get_output_embeddings().weight.data_ptr() == model.get_input_embeddings().weight.data_ptr()"),
        fix(scene, "Load with what ties", "model.load_state_dict(state, strict=False) for that key, or from_pretrained, which ties by itself"),
    )


CAUSE = Cause(
    id="tied-weights-lost",
    title="Tied weights have become two",
    means="Weights that are meant to be one have become two, or none.",
    telling="A head as the only missing or newly initialised key; storages that differ after a load or a wrap.",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="data_ptr() of the input and the output embedding after init, load and wrapping",
    refines="user-exception",
    wording=WORDING,
)
