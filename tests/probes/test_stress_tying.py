"""The suite on tying: each way to lose a tie is found under its name, and what stays tied draws
nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.probes.stress_runs import Wrote, wrote

pytestmark = pytest.mark.torch

SOURCE = (Path(__file__).parent / "data" / "tied_models.py.txt").read_text(encoding="utf-8")
FAULTS = {
    "copied": {"tied.init"},
    "flag": {"tied.init"},
    "numbers": {
        "tied.after_copy",
        "tied.after_wrap",
    },  # two parameters over the same numbers: a cast parts them, and so does fully_shard
    "Loads": {"tied.after_load"},
    "Copies": {"tied.after_copy"},
    "Steps": {"tied.after_step"},
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wrote]:
    pytest.importorskip("torch")
    return wrote(
        "tying", tmp_path_factory.mktemp("models"), "Net", "separate", *FAULTS, source=SOURCE
    )


@pytest.mark.parametrize("name", FAULTS)
def test_a_lost_tie_is_found_with_both_names(name: str, found: dict[str, Wrote]) -> None:
    assert {(what, where) for _, what, where in found[name].findings} == {
        ("parameter", "head.weight")
    }
    names = {one for one, _, _ in found[name].findings}
    assert names == FAULTS[name] or (
        name == "numbers" and names == {"tied.after_copy"}
    )  # an older torch has no fully_shard
    rows = [row for row in found[name].rows if row["row"] == "held" and not row["fine"]]
    assert all(
        row["labels"]["partner"] == "words.weight" and "words.weight" in row["says"] for row in rows
    )


def test_what_stays_tied_draws_nothing(found: dict[str, Wrote]) -> None:
    assert found["Net"].findings == []
    held = {row["name"] for row in found["Net"].rows if row["row"] == "held"}
    assert held == {
        "tied.init",
        "tied.after_copy",
        "tied.after_load",
        "tied.after_step",
        "tied.after_wrap",
    }
    assert "in DistributedDataParallel" in found["Net"].says("summary")


def test_two_parameters_that_nobody_wants_to_be_one_are_left_alone(found: dict[str, Wrote]) -> None:
    assert found["separate"].findings == []
    assert not [row for row in found["separate"].rows if row["row"] == "held"]
