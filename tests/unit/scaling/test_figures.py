"""What the predictions are worth, on seeds that no constant was found on."""

from __future__ import annotations

import json

import pytest

from tests.unit.scaling.invented import LAWS, invent
from tests.unit.scaling.judged import FOUND_ON, RESULTS, SHOWN, TESTED, figures, judge, judged
from trainprobe.model.codec import to_json


def test_intervals_errors_and_announcements_hold_what_the_page_says() -> None:
    rows = judged(TESTED)
    found = figures(rows)
    assert len(rows) >= 60
    assert found["inside"] >= 0.85
    assert found["inside_seen"] >= 0.85
    assert found["median_error"] <= 0.15
    assert found["hits"] >= 20
    assert found["announced"] >= 0.95
    assert found["no_hits"] >= 20
    assert found["falsely"] <= 0.02


def test_intervals_are_no_formality() -> None:
    """An interval that holds everything is worth nothing: half of them are narrower than a
    decade, and they differ from set to set.
    """
    widths = [row.interval.high / row.interval.low for row in judged(range(3))]
    assert sorted(widths)[len(widths) // 2] < 20
    assert min(widths) < 2


@pytest.mark.soak
def test_the_published_figures_are_those_of_this_fit() -> None:
    shown = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert shown["all"]["sets"] == len(SHOWN) * len(LAWS)
    law = "n log n"
    assert shown["by_law"][law] == to_json(figures([judge(invent(law, seed)) for seed in SHOWN])), (
        "run: python -m tests.unit.scaling.judged"
    )
    assert shown["all"]["inside"] >= 0.85
    assert shown["all"]["median_error"] <= 0.15
    assert shown["all"]["announced"] >= 0.95
    assert shown["all"]["falsely"] <= 0.02


def test_the_seeds_are_apart() -> None:
    assert not set(FOUND_ON) & set(SHOWN)
    assert set(TESTED) <= set(SHOWN)
