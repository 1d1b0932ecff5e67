"""The suite of random configurations: what fails is found, shrunk to the option that it depends
on, and told with the command to repeat it.
"""

from __future__ import annotations

import importlib.util

import pytest

from tests.probes.stress_runs import ROOT, Wrote, wrote

pytestmark = pytest.mark.torch

found_there = importlib.util.spec_from_file_location(
    "stress_options", ROOT / "probes" / "_model_stress" / "config_options.py"
)
assert found_there is not None
assert found_there.loader is not None
drawing = importlib.util.module_from_spec(found_there)
found_there.loader.exec_module(drawing)

FAULTS = {
    "four_heads_fail": "heads=4",
    "no_bias_fails": "bias=False",
    "no_dropout_fails": "dropout=0.0",
    "scaled_is_not_saved": "scaled=True",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wrote]:
    pytest.importorskip("torch")
    return wrote(
        "fuzz",
        tmp_path_factory.mktemp("models"),
        "sound",
        "refuses_most",
        "too_large",
        "normed:normed_sample",
        *FAULTS,
    )


@pytest.mark.parametrize("name", FAULTS)
def test_a_failing_configuration_is_shrunk_to_its_option(
    name: str, found: dict[str, Wrote]
) -> None:
    assert found[name].findings == [("config.fails", "option", FAULTS[name])], found[name].rows


def test_a_finding_says_how_to_repeat_it_and_where_it_failed(found: dict[str, Wrote]) -> None:
    row = found["four_heads_fail"].finding()
    assert row["labels"]["module"] == "blocks.0.attention"
    assert "--suites fuzz --fuzz 12 --seed 0" in row["says"]
    assert found["no_dropout_fails"].finding()["labels"]["module"] == "blocks.0"


def test_a_sound_model_runs_in_all_configurations(found: dict[str, Wrote]) -> None:
    (tried,) = (
        row
        for row in found["sound"].rows
        if row["row"] == "number" and row["name"] == "config.tried"
    )
    assert found["sound"].findings == []
    assert (tried["value"], tried["labels"]) == (12, {"works": 12})


def test_a_refusal_as_it_is_built_is_no_failure(found: dict[str, Wrote]) -> None:
    assert found["refuses_most"].findings == []


def test_a_suite_that_judged_no_configuration_is_skipped(found: dict[str, Wrote]) -> None:
    skipped = found["too_large"].says("skipped")
    assert "none of the 12 configurations drawn was judged" in skipped
    assert "too large" in skipped
    assert not [row for row in found["too_large"].rows if row["row"] in ("held", "summary")]


def test_a_factory_without_options_is_skipped_in_words(found: dict[str, Wrote]) -> None:
    assert "has numeric or boolean options" in found["normed:normed_sample"].says("skipped")


def test_the_seed_alone_draws_the_configurations() -> None:
    options = {"hidden": 32, "heads": 4, "layers": 2, "dropout": 0.1, "bias": True}
    one, again, other = (drawing.drawn(options, seed, 12, 8) for seed in (3, 3, 4))
    assert one == again
    assert one != other


def test_configurations_keep_the_relations_of_the_defaults() -> None:
    options = {"hidden": 32, "heads": 4, "kv_heads": 2, "experts": 4, "top_k": 2, "max_len": 64}
    for changed in drawing.drawn(options, 0, 200, 16):
        drawn = {**options, **changed}
        assert drawn["hidden"] % drawn["heads"] == 0
        assert drawn["hidden"] % 4 == 0
        assert drawn["heads"] % drawn["kv_heads"] == 0
        assert 1 <= drawn["top_k"] <= drawn["experts"]
        assert drawn["max_len"] >= 16


def test_each_value_of_each_option_is_drawn_before_one_comes_again() -> None:
    options = {"layers": 2, "bias": True, "dropout": 0.1}
    drawn = [{**options, **changed} for changed in drawing.drawn(options, 5, 12, 8)]
    assert {one["bias"] for one in drawn} == {True, False}
    assert {one["layers"] for one in drawn} >= {1, 2, 3}


def test_what_belongs_to_the_data_is_left_alone() -> None:
    options = {
        "vocab_size": 99,
        "num_labels": 3,
        "pad_token_id": 0,
        "in_features": 8,
        "hidden": 32,
        "seed": 1,
        "layers": 2,
    }
    assert set(drawing.variable(options, library=False)) == {"hidden", "layers"}
    library = {
        "hidden_size": 32,
        "vocab_size": 99,
        "use_cache": True,
        "attention_dropout": 0.0,
        "is_decoder": False,
        "num_hidden_layers": 2,
    }
    assert set(drawing.variable(library, library=True)) == {
        "hidden_size",
        "attention_dropout",
        "num_hidden_layers",
    }


def test_an_option_that_breaks_with_a_number_of_the_factory_is_coupled_to_it() -> None:
    options = {"width": 16, "bias": True, "layers": 2}
    assert drawing.coupled({"width": 10}, options, [4]) == 4
    assert drawing.coupled({"width": 24}, options, [4]) is None
    assert drawing.coupled({"width": 24}, options, [32]) == 32
    assert drawing.coupled({"width": 10, "bias": False}, options, [4]) is None
    assert drawing.coupled({"width": 10}, options, []) is None
