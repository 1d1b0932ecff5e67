"""What a suite writes is JSON that the evidence can hold, whatever the model gave."""

from __future__ import annotations

import importlib
import json
import math
import sys
from pathlib import Path

import pytest

from tests.probes.stress_runs import ROOT

sys.path.insert(0, str(ROOT / "probes"))
from _model_stress import findings


class WordlessError(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, -1e300, 10**30])
def test_no_number_is_beyond_what_the_evidence_holds(value: float, tmp_path: Path) -> None:
    suite = findings.Findings(str(tmp_path / "suite"), 60.0)
    assert suite.held("mask.ignored", value, 0.5, "", "It differs.") == (
        value < 0.5 and math.isfinite(value)
    )
    suite.number("ranks.loss_difference", value, "of the loss")
    rows = [json.loads(line) for line in (tmp_path / "suite").read_text().splitlines()]
    assert all(math.isfinite(row["value"]) and abs(row["value"]) < 2**63 for row in rows)


def test_what_an_exception_says_is_written_also_where_it_says_nothing(tmp_path: Path) -> None:
    suite = findings.Findings(str(tmp_path / "suite"), 60.0)
    suite.raised("shape.raises", WordlessError(), "It fails.")
    suite.raised("shape.raises", ValueError("\udcff\x00" + "x" * 100_000), "It fails.")
    wordless, long = [
        json.loads(line)["labels"] for line in (tmp_path / "suite").read_text().splitlines()
    ]
    assert wordless == {
        "type": "WordlessError",
        "message": "(its message cannot be read: ValueError)",
    }
    assert len(long["message"]) == 600


@pytest.mark.torch
def test_a_kernel_that_this_processor_lacks_is_no_fault_of_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As oneDNN says it of an LSTM in float16."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "probes"))
    is_missing = importlib.import_module("_model_stress.suites.precision").is_missing

    assert is_missing(
        RuntimeError(
            "could not create a primitive descriptor for the LSTM forward propagation primitive."
        )
    )
    assert not is_missing(RuntimeError("mat1 and mat2 must have the same dtype"))
