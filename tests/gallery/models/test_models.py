"""The gallery of models: each planted fault is one, each sound program is none, and the score
counts what it says.
"""

from __future__ import annotations

import re
import tokenize
from io import StringIO
from pathlib import Path

import pytest

from tests.gallery.models.architectures import ARCHITECTURES, loaded, source
from tests.gallery.models.proofs import PROOFS, Case
from tests.gallery.models.score import Finding, Said, by_probe, judged, totals
from tests.gallery.models.sound import sound
from tests.gallery.models.truth import KNOWN, Fault, edited, faults

ALL = faults()
BY_NAME = {one.name: one for one in ALL}
# one of each kind that needs neither Lightning nor several processes
QUICK = (
    "decoder padding from the second layer on",
    "decoder additive mask read as truth values",
    "decoder boosted feed-forward",
    "decoder head made anew by load",
    "decoder counts its steps",
    "decoder distances between tokens",
    "writer diagonal one up",
    "writer init after the tie",
    "writer gate never called",
    "reader divides by the padded length",
    "reader squeezes its answer",
    ("picture attends across images"),
    "picture drops paths always",
)


def shown(fault: Fault, folder: Path) -> tuple[bool, bool]:
    """What the fault's proof says of the faulty program and of the sound one."""
    import torch

    torch.set_num_threads(1)  # small models: threads only wait for each other
    architecture = ARCHITECTURES[fault.architecture]
    faulty = loaded(fault.program(), str(folder), "planted")
    fine = loaded(source(fault.architecture), str(folder), "unchanged")
    proof = PROOFS[fault.proof]
    return proof(Case(architecture, faulty), **fault.options), proof(
        Case(architecture, fine), **fault.options
    )


def test_the_truth_is_whole() -> None:
    assert len(ALL) >= 40
    assert len(BY_NAME) == len(ALL)
    assert len({one.architecture for one in ALL}) >= 3
    assert all(
        set(one.causes) <= KNOWN and one.causes and one.where and one.proof in PROOFS for one in ALL
    )
    assert {cause for one in ALL for cause in one.causes} == KNOWN
    assert min(sum(one.part == part for one in ALL) for part in ("development", "reporting")) >= 20
    assert len(sound(0)) >= 20


@pytest.mark.parametrize("fault", ALL, ids=lambda one: one.name)
def test_a_planted_program_is_python_and_another_one(fault: Fault) -> None:
    program = fault.program()
    compile(program, "planted", "exec")
    assert program != source(fault.architecture)


def test_a_program_does_not_tell_its_fault() -> None:
    for fault in ALL:
        said = " ".join(
            token.string
            for token in tokenize.generate_tokens(StringIO(fault.program()).readline)
            if token.type == tokenize.COMMENT
        )
        assert not re.search(r"\b(bug|fault|wrong|broken|missing|should)\b", said, re.IGNORECASE), (
            fault.name
        )


@pytest.mark.torch
@pytest.mark.parametrize("name", QUICK)
def test_a_planted_fault_shows_without_the_tool(name: str, tmp_path: Path) -> None:
    assert shown(BY_NAME[name], tmp_path) == (True, False)


@pytest.mark.soak
@pytest.mark.torch
@pytest.mark.parametrize(
    "fault", [one for one in ALL if one.name not in QUICK], ids=lambda one: one.name
)
def test_each_planted_fault_shows_without_the_tool(fault: Fault, tmp_path: Path) -> None:
    if ARCHITECTURES[fault.architecture].needs:
        pytest.importorskip(ARCHITECTURES[fault.architecture].needs)
    assert shown(fault, tmp_path) == (True, False)


@pytest.mark.torch
def test_the_probe_names_a_layer_that_forgets_the_mask(tmp_path: Path) -> None:
    fault = BY_NAME["reader padding for one layer only"]
    (tmp_path / "given.py").write_text(fault.program())
    row = judged(
        fault,
        by_probe(
            str(tmp_path), ["--model", "given.py:classifier", "--sample", "given.py:texts"], "masks"
        ),
    )
    assert (row["right_id"], row["right_name"], row["wrong_ids"]) == (True, True, [])


def test_an_edit_must_stand_in_the_program_once() -> None:
    assert edited("a\n    b\n    c\n", "b\nc", "d", "x") == "a\n    d\n"
    assert edited("one = f(2)\n", "f(2)", "f(3)", "x") == "one = f(3)\n"
    with pytest.raises(ValueError, match="once"):
        edited("b\na\nb\n", "b", "c", "x")


def test_names_are_matched_as_the_truth_has_them() -> None:
    layer, size, option = (
        BY_NAME[name]
        for name in (
            "decoder padding from the second layer on",
            "reader squeezes its answer",
            "reader odd width",
        )
    )
    assert layer.named("layers.1.attn")
    assert not layer.named("layers.0.attn")
    assert not layer.named("")
    assert size.named("1x8")
    assert size.named("Classifier")
    assert not size.named("pool")
    assert option.named("dim=15,num_heads=3")
    assert not option.named("num_layers=1")


def test_a_row_counts_the_first_cause_the_name_and_what_is_beside_it() -> None:
    fault = BY_NAME["reader mean over everything"]
    right, other = (
        Finding("model-mask-fault", "mask.ignored", "module", "pool"),
        Finding("model-shape-fault", "shape.raises", "size", "1x8"),
    )
    rows = [
        judged(fault, Said([right], "no", "", [], 1.0)),
        judged(fault, Said([right, other], "no", "", [], 1.0)),
        judged(fault, Said([other, right], "no", "", [], 1.0)),
        judged(fault, Said([], "yes", "", [], 1.0)),
    ]
    assert [(row["right_id"], row["right_name"], row["right"]) for row in rows] == [
        (True, True, True),
        (True, True, False),
        (False, True, False),
        (False, False, False),
    ]
    assert totals(rows)[fault.part] == {
        "faults": 4,
        "right_id": 2,
        "right_name": 3,
        "named_somewhere": 3,
        "right": 1,
        "with_wrong_ids": 2,
    }


def test_a_sound_model_must_have_an_answer_without_findings() -> None:
    one = sound(0)[0]
    assert judged(one, Said([], "yes", "", [], 1.0))["right"]
    assert not judged(one, Said([], "cannot", "", [], 1.0))["right"]
    assert not judged(one, Said([], "yes", "", ["masks: unanswered"], 1.0))["right"]
    assert not judged(
        one, Said([Finding("nan-loss", "gradient.not_finite", "", "")], "no", "", [], 1.0)
    )["right"]
