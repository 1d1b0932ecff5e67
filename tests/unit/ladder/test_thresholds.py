"""A number beyond what the settings allow fails a rung that passed, and says which number of
whom.
"""

from __future__ import annotations

from typing import Any

from trainprobe.ladder.outcome import Result
from trainprobe.ladder.thresholds import Thresholds, held_against


def row(name: str, value: float, who: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "unit": "s",
        "threshold": 60.0,
        "source": "its own",
        "who": who,
    }


def result(*rows: dict[str, Any], outcome: Any = "passed") -> Result:
    return Result(outcome, "", (), {"measures": list(rows)})


def test_without_limits_nothing_changes() -> None:
    before = result(row("init_s", 12.0))
    assert held_against(before, "gloo_control", Thresholds()) == before


def test_more_than_allowed_fails_and_names_the_rank() -> None:
    after = held_against(
        result(row("init_s", 1.0, "rank 0"), row("init_s", 12.0, "rank 3")),
        "gloo_control",
        Thresholds(at_most={"init_s": 10.0}),
    )
    assert (after.outcome, after.ranks) == ("failed", (3,))
    assert (
        after.says
        == "the measure init_s is 12 s on rank 3, more than the 10 s that trainprobe.yaml asks for"
    )
    assert [(one["threshold"], one["source"]) for one in after.more["measures"]] == [
        (10.0, "trainprobe.yaml")
    ] * 2


def test_less_than_asked_for_fails_too() -> None:
    after = held_against(
        result(row("rate", 1.0), row("rate", 2.0)), "single_gpu", Thresholds(at_least={"rate": 3.0})
    )
    assert (
        after.says
        == "the measure rate is 1 s, less than the 3 s that trainprobe.yaml asks for (1 more)"
    )


def test_a_rungs_own_limit_comes_first() -> None:
    limits = Thresholds(at_most={"init_s": 1.0, "gloo_control.init_s": 100.0})
    assert held_against(result(row("init_s", 12.0)), "gloo_control", limits).outcome == "passed"
    assert held_against(result(row("init_s", 12.0)), "train_step", limits).outcome == "failed"


def test_what_failed_by_itself_keeps_its_own_words() -> None:
    after = held_against(
        result(row("init_s", 12.0), outcome="timed_out"), "p", Thresholds(at_most={"init_s": 1.0})
    )
    assert (after.outcome, after.says) == ("timed_out", "")
    assert after.more["measures"][0]["threshold"] == 1.0
