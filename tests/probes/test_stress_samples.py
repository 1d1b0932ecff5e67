"""Samples that take the number of rows alone, of pictures, bags and raw audio; and what the first
look and the memory layouts find in their models.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.probes.stress_runs import Wrote, wrote

pytestmark = pytest.mark.torch

SOURCE = (Path(__file__).parent / "data" / "sampled_models.py.txt").read_text(encoding="utf-8")
SOUND = ("plain:pictures", "bags:baskets", "segments:maps", "waves:sounds")
FAULTS = {
    "strided:pictures": ("shape.strides", "module", "Strided"),
    "in_place:pictures": ("evaluation.input", "leaf", "its input"),
}

RANKED = {
    "seeded:pictures": [("ranks.seeded", "module", "Seeded")],
    "careful:pictures": [],
    "cut:pictures": [("unused.parameter", "parameter", "conv.weight")],
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wrote]:
    pytest.importorskip("torch")
    return wrote("shapes", tmp_path_factory.mktemp("models"), *SOUND, *FAULTS, source=SOURCE)


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wrote]:
    pytest.importorskip("torch")
    return wrote("ranks", tmp_path_factory.mktemp("models"), *RANKED, source=SOURCE)


def told(wrote_: Wrote) -> list[tuple[str, str, str]]:
    """What the first look and the suite found."""
    return [
        (row["name"], row["what"], row["where"])
        for row in wrote_.rows
        if row["row"] in ("held", "first look") and not row["fine"]
    ]


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_model_draws_no_finding_from_a_sample_of_rows(
    name: str, found: dict[str, Wrote]
) -> None:
    assert told(found[name]) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_alone(name: str, found: dict[str, Wrote]) -> None:
    assert told(found[name]) == [FAULTS[name]]


@pytest.mark.parametrize("name", RANKED)
def test_seeds_and_cut_gradients_are_found_by_the_ranks(
    name: str, ranked: dict[str, Wrote]
) -> None:
    assert told(ranked[name]) == RANKED[name]


def test_pictures_are_asked_for_in_other_numbers_of_rows(found: dict[str, Wrote]) -> None:
    assert "5 sizes up to 8" in found["plain:pictures"].says("summary")
    assert "rows alone as in company" in found["plain:pictures"].says("summary")


def test_rows_of_bags_are_not_taken_apart(found: dict[str, Wrote]) -> None:
    assert "the rows of a batch cannot be told apart: 0 holds" in found["bags:baskets"].says("note")


def test_a_map_of_pixels_has_no_positions(found: dict[str, Wrote]) -> None:
    assert "5 sizes up to 8" in found["segments:maps"].says("summary")


def test_audio_is_made_long_enough_for_the_convolutions(found: dict[str, Wrote]) -> None:
    assert "up to 2x512" in found["waves:sounds"].says("summary")
