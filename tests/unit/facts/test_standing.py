"""A climb that was gone on with: what it has declared void yields no facts."""

from __future__ import annotations

from trainprobe.facts import Rung, read
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import JOB


def rung(number: int, outcome: str) -> Evidence:
    return Evidence(
        f"E{number}",
        "rung",
        JOB,
        "user_script@1x2",
        "ladder",
        0.0,
        0.0,
        "ok",
        "",
        {"probe": "user_script", "nproc": 1, "outcome": outcome},
    )


def resumed(number: int, *void: str) -> Evidence:
    return Evidence(
        f"E{number}",
        "resumed",
        JOB,
        "",
        "ladder",
        0.0,
        0.0,
        "ok",
        "",
        {"void": list(void), "kept": []},
    )


def test_the_unanswered_cell_of_the_earlier_climb_counts_no_longer() -> None:
    found = read([rung(1, "skipped"), resumed(2, "E1"), rung(3, "passed")])

    assert [fact.outcome for fact in found.of(Rung)] == ["passed"]


def test_without_a_word_about_it_all_evidence_stands() -> None:
    assert [fact.outcome for fact in read([rung(1, "passed"), rung(3, "crashed")]).of(Rung)] == [
        "passed",
        "crashed",
    ]
