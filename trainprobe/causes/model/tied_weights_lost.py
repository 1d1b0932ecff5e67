"""Weights that are meant to be one have become two, or none.

The output layer of many language models is the table of its input. A load, a wrapper or a move to
another device can part them: the head is then new and random, or a checkpoint lacks it.

It is recognised by a checkpoint in which a head is the only missing key, by the notice that such a
head was newly initialised, by the words about tying of accelerate, and by the measurements `tied.*`
(storage of tied weights after init, load, wrapping and a step).
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.measured import measured_summary, stressed_or, weigh_measures
from trainprobe.causes.model.state_dict_mismatch import (
    MISSING,
    UNEXPECTED,
    keys,
    messages_about_keys,
)
from trainprobe.causes.phrases import fixes
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import quoted
from trainprobe.causes.statements import first_to_fail, weigh_statement
from trainprobe.model.ranks import and_list
from trainprobe.signatures.messages import message

WORDING = message("tied-weights-lost")
SHARED = message("tied-weights-lost.shared")
MEASURED = "tied."
HEADS = re.compile(
    r"(?:^|\.)(?:lm_head|embed_out|output_projection|cls\.predictions\.decoder|generator_lm_head"
    r"|decoder\.output_projection|embed_tokens|shared)\.(?:weight|bias)$"
)
FIXES = """
Tie after loading and before wrapping
    model.tie_weights(), then FSDP or DDP
    config.tie_word_embeddings as it was when it was saved
Check that they are one
    model.get_output_embeddings().weight.data_ptr() ==
        model.get_input_embeddings().weight.data_ptr()
Load with what ties
    model.load_state_dict(state, strict=False) for that key, or from_pretrained, which ties by
        itself
"""


def _missing_heads(scene: Scene) -> tuple[str, ...]:
    """The missing keys, where all of them are tied heads and nothing else is wrong."""
    text = messages_about_keys(scene)
    missing = keys(MISSING, text)
    others = keys(UNEXPECTED, text) or "size mismatch for" in text
    return missing if not others and all(HEADS.search(name) for name in missing) else ()


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_measures(scene, MEASURED)
    found, heads = tuple(weigh_statement(scene, WORDING)), _missing_heads(scene)
    yield from found
    if heads:
        facts = (scene.origin, *scene.events("state-dict-mismatch"))
        says = f"The only keys that are missing are tied ones: {and_list(heads)}"
        yield weighing(26, "suspects-log", says, *facts)
        yield weighing(
            10, "source", "A tied weight is saved once, under the name of the other", *facts
        )
    elif not found:
        # The weights are still tied; only the save cannot write them.
        yield from quoted(6, "Tied weights cannot be saved one by one", SHARED)(scene)
    if heads or found:
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    heads = _missing_heads(scene)
    otherwise = f"{and_list(heads)} is missing" if heads else "they are two"
    fault = "Weights that should be one are not shared any more"
    finders = () if heads else (WORDING, SHARED)
    return measured_summary(MEASURED, fault, *finders, otherwise=otherwise)(scene)


CAUSE = Cause(
    id="tied-weights-lost",
    title="Tied weights have become two",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=stressed_or(MEASURED, fixes(FIXES)),
    ranks=nobody,
    would_settle="data_ptr() of the input and the output embedding after init, load and wrapping",
    refines="user-exception",
    wording=WORDING,
)
