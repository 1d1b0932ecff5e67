"""How a cell came out."""

from __future__ import annotations

import pytest

from trainprobe.ladder.outcome import Answered, of_probe, of_script
from trainprobe.model.evidence import Ended

OK = Ended("exited", code=0)
OURS = Ended("signalled", signal=15, by_us=True)


def one(
    rank: int | None,
    answer: str = "yes",
    ended: Ended = OK,
    says: str = "so it is",
    phase: str = "",
) -> Answered:
    return Answered(rank, answer, says if answer else "", ended, phase)


def test_all_yes_passes_with_the_first_ones_words() -> None:
    assert (of_probe([one(0), one(1)], 9).outcome, of_probe([one(0), one(1)], 9).says) == (
        "passed",
        "so it is",
    )


def test_any_no_fails_and_names_the_rank() -> None:
    result = of_probe([one(0), one(1, "no", says="sum is 3, not 4"), one(2, "", OURS)], 9)

    assert (result.outcome, result.ranks, result.says) == (
        "failed",
        (1,),
        "rank 1: sum is 3, not 4",
    )


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (Ended("exited", code=0), "rank 1 ended with exit code 0 without an answer, in phase init"),
        (
            Ended("signalled", signal=11),
            "rank 1 was ended by SIGSEGV without an answer, in phase init",
        ),
        (
            Ended("oom_killed", signal=9),
            "rank 1 was killed because memory ran out without an answer, in phase init",
        ),
    ],
)
def test_an_end_without_an_answer_is_a_crash_whatever_its_code(ended: Ended, words: str) -> None:
    result = of_probe([one(0, "", OURS), one(1, "", ended, phase="init")], 9)

    assert (result.outcome, result.ranks, result.says) == ("crashed", (1,), words)


def test_a_missed_deadline_names_those_that_missed_it() -> None:
    result = of_probe([one(0), one(1, "", OURS, phase="barrier"), one(2, "", OURS)], 9)

    assert (result.outcome, result.ranks) == ("timed_out", (1, 2))
    assert "within 9 s, in phase barrier" in result.says


def test_cannot_is_not_measured() -> None:
    assert of_probe([one(None, "cannot", says="no torch")], 9).outcome == "not_measured"
    assert of_probe([one(0, "cannot"), one(1, "", OURS)], 9).outcome == "not_measured"


def test_those_that_the_launcher_ended_did_not_fail() -> None:
    endings = {0: Ended("signalled", signal=15, at=3.0), 1: Ended("exited", code=1, at=2.0)}

    result = of_script(endings, Ended("exited", code=1), command=True)

    assert result is not None
    assert (result.outcome, result.ranks, result.says) == (
        "crashed",
        (1,),
        "rank 1 ended with exit code 1",
    )


def test_a_launcher_that_fails_alone_and_ends_of_ours() -> None:
    alone = of_script({}, Ended("exited", code=2), command=True)

    assert alone is not None
    assert (alone.ranks, alone.says) == ((), "the command ended with exit code 2")
    assert of_script({0: OURS, 1: OK}, OURS, command=True) is None
