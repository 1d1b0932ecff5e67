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
from trainprobe.causes.measured import says, weigh_measures, worst
from trainprobe.causes.model.state_dict_mismatch import MISSING, UNEXPECTED, keys, words
from trainprobe.causes.model_stress import stressed_fixes, stressed_summary
from trainprobe.causes.phrases import Fixes, fix, listed, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import first_to_fail, quote, statement, weigh_statement
from trainprobe.signatures.messages import message

HEADS = re.compile(
    r"(?:^|\.)(?:lm_head|embed_out|output_projection|cls\.predictions\.decoder|generator_lm_head"
    r"|decoder\.output_projection|embed_tokens|shared)\.(?:weight|bias)$"
)
WORDING = message("tied-weights-lost")
SHARED = r"Some tensors share memory, this will lead to duplicate memory"


def _missing_heads(scene: Scene) -> tuple[str, ...]:
    """The missing keys where all of them are heads that are tied to something else, and nothing
    else is wrong.
    """
    text = words(scene)
    missing = keys(MISSING, text)
    if (
        missing
        and not keys(UNEXPECTED, text)
        and "size mismatch for" not in text
        and all(HEADS.search(name) for name in missing)
    ):
        return missing
    return ()


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_measures(scene, "tied.")
    heads = _missing_heads(scene)
    heard = tuple(weigh_statement(scene, WORDING))
    shared = statement(scene, SHARED)
    yield from heard
    if heads:
        yield weighing(
            26,
            "suspects-log",
            f"The only keys that are missing are tied ones: {listed(heads)}",
            scene.origin,
            *scene.events("state-dict-mismatch"),
        )
        yield weighing(
            10,
            "source",
            "A tied weight is saved once, under the name of the other",
            scene.origin,
            *scene.events("state-dict-mismatch"),
        )
    elif shared is not None and not heard:
        # they are still one; it is the save that cannot write them
        yield quote(6, "Weights that are one cannot be saved one by one", shared)
    if heads or heard:
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    if told := stressed_summary(scene.group, "tied."):
        return told
    number = worst(scene, "tied.")
    heads = _missing_heads(scene)
    heard = statement(scene, WORDING) or statement(scene, SHARED)
    what = (
        says(number)
        if number is not None
        else (
            f"{listed(heads)} is missing"
            if heads
            else short(heard.text, 160)
            if heard is not None
            else "they are two"
        )
    )
    return f"Weights that should be one are not shared any more: {what}"


def _fixes(scene: Scene) -> Fixes:
    if found := stressed_fixes(scene, "tied."):
        return found
    return (
        fix(
            "Tie after loading and before wrapping",
            "model.tie_weights(), then FSDP or DDP",
            "config.tie_word_embeddings as it was when it was saved",
        ),
        fix(
            "Check that they are one",
            "model.get_output_embeddings().weight.data_ptr() =="
            " model.get_input_embeddings().weight.data_ptr()",
        ),
        fix(
            "Load with what ties",
            "model.load_state_dict(state, strict=False) for that key, or from_pretrained, which"
            " ties by itself",
        ),
    )


CAUSE = Cause(
    id="tied-weights-lost",
    title="Tied weights have become two",
    modes=("crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="data_ptr() of the input and the output embedding after init, load and wrapping",
    refines="user-exception",
    wording=WORDING,
)
