"""A fixed part of the cases of logs is judged right, and the results that docs/accuracy.md shows
belong to these cases.
"""

from __future__ import annotations

import hashlib

import pytest

from tests.gallery.logs import score
from tests.gallery.logs.answers import CASES, Answer, digest, part_of, read_answers
from trainprobe.causes.priors import load_priors

ANSWERS = read_answers()
BYTES_AT_MOST = 4_000_000
RIGHT_AT_LEAST = 0.9


def chosen() -> list[Answer]:
    """A fixed sixth of all cases, by a hash of their names; both parts, so that a rule made for
    one shows.
    """
    return [
        answer
        for answer in ANSWERS
        if hashlib.sha256(f"chosen {answer.case}".encode()).digest()[0] % 6 == 0
    ]


def test_each_case_has_an_answer_and_each_answer_a_case() -> None:
    assert {path.name for path in CASES.iterdir()} == {answer.case for answer in ANSWERS}
    assert all(answer.part == part_of(answer.case) for answer in ANSWERS)


def test_the_cases_are_many_and_small() -> None:
    assert len(ANSWERS) >= 150
    assert sum(path.stat().st_size for path in CASES.rglob("*") if path.is_file()) <= BYTES_AT_MOST
    healthy = [
        answer for answer in ANSWERS if answer.cause == "none" and "healthy" in answer.verdict
    ]
    assert len(healthy) >= 30


def test_each_cause_is_of_the_catalogue() -> None:
    known = {*load_priors().causes, "none", "unknown"}
    assert {name for answer in ANSWERS for name in score.accepted(answer)} <= known


def test_nothing_of_the_recording_machine_is_left() -> None:
    for path in CASES.rglob("*"):
        if path.suffix in (".log", ".txt", ".out"):
            assert b"trainprobe" not in path.read_bytes(), path


def test_no_path_of_a_case_tells_its_cause() -> None:
    names = {name for answer in ANSWERS for name in score.accepted(answer) if "-" in name}
    for path in CASES.rglob("*"):
        assert not any(name in path.relative_to(CASES).as_posix() for name in names), path


def test_the_results_shown_belong_to_these_cases() -> None:
    seen, rows = score.load()
    assert seen == digest(), "run: make accuracy-logs"
    assert len(rows) == len(ANSWERS)


@pytest.mark.slow
def test_a_fixed_part_is_judged_right() -> None:
    rows = [(answer, score.result_of(answer, with_baselines=False)) for answer in chosen()]
    assert not [said["fault"] for _, said in rows if "fault" in said]
    right = sum(score.fits(*row) for row in rows)
    shown = "\n".join(
        score.misses([row for row in rows if row[0].part == "fit"])
    )  # nobody mends a rule for a case of the other part
    assert right >= RIGHT_AT_LEAST * len(rows), f"{right} of {len(rows)}\n{shown}"


def test_the_rules_count_as_they_say() -> None:
    ill = Answer("a", "cuda-oom", ("cuda-fragmentation",), (3,))
    said = {
        "verdict": "crashed",
        "causes": [
            {"id": "unknown", "ranks": [3], "confidence": 0.3, "named": False},
            {"id": "cuda-oom", "ranks": [3]},
        ],
    }
    assert not score.fits(ill, said)
    assert score.fits(ill, said, 3)
    other = {
        "verdict": "crashed",
        "causes": [{"id": "cuda-fragmentation", "ranks": [1], "confidence": 0.9, "named": True}],
    }
    assert score.fits(ill, other)
    assert score.wrong_ranks(ill, other)
    assert not score.fully(ill, other)
    healthy = Answer("b", "none", verdict=("healthy",))
    assert score.fits(healthy, {"verdict": "healthy", "causes": []})
    assert not score.fits(healthy, {"verdict": "undetermined", "causes": []})
    assert score.alarm(healthy, other)
