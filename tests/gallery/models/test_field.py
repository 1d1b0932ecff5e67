"""Models of many kinds and the faults planted in them: the truth is whole, its halves stay as they
were drawn, and a few are judged.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gallery.models import field
from tests.gallery.models.field import PARTS, Specimen, judgement, parts, planted, sound
from tests.gallery.models.score import Finding, Said, by_probe
from tests.gallery.models.truth import KNOWN

BY_NAME = {one.name: one for one in (*sound(), *planted())}
QUICK = (
    ("rows are flattened by a fixed number", "shapes"),
    ("generator fades in by a counter", "serialization"),
    ("dcgan", "shapes"),
)


def test_the_truth_is_whole() -> None:
    assert len(sound()) >= 40
    assert len(planted()) == 40
    assert len(BY_NAME) == len(sound()) + len(planted())
    assert all(one.causes and set(one.causes) <= KNOWN for one in planted())
    bases = {one.program for one in sound()}
    assert not [one.name for one in planted() if one.program in bases]


@pytest.mark.parametrize("name", BY_NAME)
def test_a_program_is_python_with_a_factory(name: str) -> None:
    one = BY_NAME[name]
    compile(one.program, "specimen", "exec")
    model, sample = one.functions
    assert f"def {model}(" in one.program
    assert not sample or f"def {sample}(" in one.program


def test_half_of_each_kind_is_held_out_and_stays_so() -> None:
    part_of = parts()
    for kind in (sound(), planted()):
        held_out = sum(part_of[one.name] == PARTS[1] for one in kind)
        assert held_out == len(kind) // 2
    judged = field.read(field.RESULTS)
    assert {name: row["part"] for name, row in judged.items()} == part_of
    assert all("first" in row for row in judged.values())


def test_the_page_has_the_figures_of_the_last_run() -> None:
    found = field.totals(list(field.read(field.RESULTS).values()))
    page = (Path(__file__).parents[3] / "docs" / "model-stress.md").read_text(encoding="utf-8")
    for title, part, when in (
        ("**held out, judged once**", "held-out", "first"),
        ("development, as it was before", "development", "first"),
        ("development, after mending", "development", "now"),
    ):
        one = found[part][when]
        row = [one[key] for key in ("planted", "right", "alone", "sound", "without_finding")]
        assert f"| {title} | {' | '.join(map(str, row))} |" in page


def test_a_judgement_counts_the_first_cause_and_what_is_beside_it() -> None:
    one = Specimen("x", "def make(): ...", ("model-mask-fault",))
    mask = Finding("model-mask-fault", "mask.ignored", "module", "attn")
    shape = Finding("model-shape-fault", "shape.raises", "size", "1x8")
    rows = [
        judgement(one, Said(found, "at-risk", "", [], 1.0))
        for found in ([mask], [mask, shape], [shape, mask], [])
    ]
    assert [(row["right"], row["alone"]) for row in rows] == [
        (True, True),
        (True, False),
        (False, False),
        (False, False),
    ]
    fine = one._replace(causes=())
    assert judgement(fine, Said([], "healthy", "", [], 1.0))["right"]
    assert not judgement(fine, Said([shape], "at-risk", "", [], 1.0))["right"]


@pytest.mark.torch
@pytest.mark.parametrize(("name", "suite"), QUICK)
def test_a_specimen_is_judged_right(name: str, suite: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    one = BY_NAME[name]
    (tmp_path / "given.py").write_text(one.program)
    model, sample = one.functions
    said = by_probe(
        str(tmp_path), ["--model", f"given.py:{model}", "--sample", f"given.py:{sample}"], suite
    )
    assert judgement(one, said)["right"], said
