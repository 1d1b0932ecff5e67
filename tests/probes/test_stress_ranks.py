"""One rank against N: what the ranks do otherwise than one process is found under its name, and
rows that belong together are no fault.
"""

from __future__ import annotations

import pytest

from tests.probes.stress_runs import Wrote, wrote
from tests.probes.test_stress_serialization import MODELS
from tests.probes.test_stress_shapes import FAMILIES, NAMES

pytestmark = pytest.mark.torch

FAULTS = {
    "first_is_other": ("ranks.loss", "module", "layers.1"),
    "times_world": ("ranks.gradient", "parameter", "layers.1.inner.weight"),
    "backwards": ("ranks.gradient", "module", "layers.1"),
    "left_out": ("ranks.parameter", "parameter", "layers.1.inner.weight"),
    "dead": ("unused.parameter", "parameter", "layers.1.dead.weight"),
    "stopped": ("unused.parameter", "parameter", "layers.1.inner.weight"),
    "Summed": ("ranks.loss", "loss", "loss"),
    "Divided": ("ranks.loss", "loss", "loss"),
    "plain": ("ranks.loss", "attribute", "layers.1.scale"),
    "late": ("ranks.gradient", "parameter", "layers.1.shift"),
}
FEW = (
    "first_is_other",
    "times_world",
    "dead",
    "Divided",
)  # in the default run; each model starts three processes and more
SOUND = ("sound", "Normed:images", "Contrast:pairs", "Gathered:pairs", "Experts:pairs", "Tagger")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wrote]:
    pytest.importorskip("torch")
    return wrote(
        "ranks", tmp_path_factory.mktemp("models"), "sound", "Contrast:pairs", *FEW, source=MODELS
    )


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wrote]:
    pytest.importorskip("torch")
    return wrote(
        "ranks",
        tmp_path_factory.mktemp("models"),
        *SOUND,
        *(name for name in FAULTS if name not in FEW),
        source=MODELS,
    )


@pytest.mark.parametrize("name", FEW)
def test_a_fault_is_found_alone_and_by_its_name(name: str, found: dict[str, Wrote]) -> None:
    assert found[name].findings == [FAULTS[name]], found[name].rows


def test_a_sound_model_draws_no_finding(found: dict[str, Wrote]) -> None:
    assert found["sound"].findings == []
    assert "2 ranks agree with one" in found["sound"].says("summary")


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in FAULTS if name not in FEW])
def test_other_faults_are_found_alone_and_by_their_names(
    name: str, others: dict[str, Wrote]
) -> None:
    assert others[name].findings == [FAULTS[name]], others[name].rows


@pytest.mark.soak
@pytest.mark.parametrize("name", SOUND)
def test_other_sound_models_draw_no_finding(name: str, others: dict[str, Wrote]) -> None:
    assert others[name].findings == []
    assert "2 ranks agree with one" in others[name].says("summary")


def test_a_loss_that_is_divided_by_the_ranks_says_the_factor(found: dict[str, Wrote]) -> None:
    assert found["Divided"].finding()["labels"]["ratio"] == pytest.approx(0.5)


def test_rows_that_belong_together_are_a_note(found: dict[str, Wrote]) -> None:
    assert found["Contrast:pairs"].findings == []
    assert "couples rows" in found["Contrast:pairs"].says("note")


@pytest.mark.soak
def test_rows_that_are_gathered_are_a_note(others: dict[str, Wrote]) -> None:
    assert "gathers" in others["Gathered:pairs"].says("note")


@pytest.mark.soak
def test_a_collective_that_one_rank_calls_names_its_module(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    pytest.importorskip("torch")
    found = wrote("ranks", tmp_path_factory.mktemp("models"), "alone_in_it", source=MODELS)[
        "alone_in_it"
    ]
    (finding,) = found.findings
    assert finding[0] in ("ranks.waits", "ranks.raises")
    assert finding[1:] == ("module", "layers.1")


@pytest.mark.soak
def test_families_of_transformers_draw_no_finding(tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    found = wrote(
        "ranks",
        tmp_path_factory.mktemp("families"),
        *(f"{name}:-" for name in NAMES),
        source=FAMILIES,
    )
    assert {name: one.findings for name, one in found.items() if one.findings} == {}
    assert all("2 ranks agree with one" in one.says("summary") for one in found.values())
