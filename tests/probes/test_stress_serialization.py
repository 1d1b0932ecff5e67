"""The suite on saving: what a state dict leaves out or changes, and what a resumed run lacks,
each under its name.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.probes.stress_runs import Wrote, wrote
from tests.probes.test_stress_shapes import FAMILIES, NAMES

pytestmark = pytest.mark.torch

MODELS = (Path(__file__).resolve().parent / "data" / "saved_models.py.txt").read_text()
FAULTS = {
    "buffer": ("state.not_saved", "buffer", "layers.1.scale"),
    "plain": ("state.not_saved", "attribute", "layers.1.scale"),
    "in_list": ("state.not_saved", "parameter", "layers.1.scales.0"),
    "in_dict": ("state.not_saved", "attribute", "layers.1.extra.gain"),
    "heat": ("resume.attribute", "attribute", "layers.1.heat"),
    "warm_up": ("resume.attribute", "attribute", "layers.1.steps"),
    "own_noise": ("resume.attribute", "attribute", "layers.1.draws"),
    "not_in_it": ("state.missing", "parameter", "layers.1.inner.bias"),
    "rounded": ("state.differs", "parameter", "layers.1.inner.weight"),
    "new_parameter": ("resume.parameter", "parameter", "layers.1.norm.weight"),
    "late": ("state.unexpected", "parameter", "layers.1.shift"),
}
SOUND = ("sound", "counter", "Normed:images", "Contrast:pairs", "Experts:pairs", "Tagger")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wrote]:
    pytest.importorskip("torch")
    return wrote("serialization", tmp_path_factory.mktemp("models"), *SOUND, *FAULTS, source=MODELS)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_alone_and_by_its_name(name: str, found: dict[str, Wrote]) -> None:
    assert found[name].findings == [FAULTS[name]], found[name].rows


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_model_draws_no_finding(name: str, found: dict[str, Wrote]) -> None:
    assert found[name].findings == []
    numbers = {row["name"]: row["value"] for row in found[name].rows if row["row"] == "number"}
    assert numbers == {"state.outputs": 0, "resume.drift": 0}
    assert "2 + save + load + 2" in found[name].says("summary")


def test_a_counter_on_which_nothing_depends_is_a_note(found: dict[str, Wrote]) -> None:
    assert "layers.1.steps" in found["counter"].says("note")


@pytest.mark.soak
def test_families_of_transformers_draw_no_finding(tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    found = wrote(
        "serialization",
        tmp_path_factory.mktemp("families"),
        *(f"{name}:-" for name in NAMES),
        source=FAMILIES,
    )
    assert {name: one.findings for name, one in found.items() if one.findings} == {}
    assert all("2 + save + load + 2" in one.says("summary") for one in found.values())
