"""The suites of the model's stress test as lines: the same in text and JSON, within the width,
whatever a probe told.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainprobe.model.diagnosis import Diagnosis, LadderRow, Report
from trainprobe.report.json_report import report_of, report_text
from trainprobe.report.lines import plain
from trainprobe.report.suite_section import suite_lines, suites_of, suites_say
from trainprobe.report.text import text_of

NAMES = ("shapes", "masks", "tying", "precision", "serialization", "fuzz", "throughput")


def row(*others: dict[str, Any], outcome: str = "failed", **states: str) -> LadderRow:
    suites = [
        {
            "name": name,
            "outcome": states.get(name, "passed"),
            "says": f"{name} tried 12 things",
            "took_s": 1.5,
        }
        for name in NAMES
    ]
    return LadderRow(
        88,
        "model_stress",
        outcome,  # type: ignore[arg-type]
        9.0,
        cell="model_stress@1",
        question="Is it sound?",
        extra={"suites": [*suites, *others]},
    )  # a word of the literal


def report(one: LadderRow) -> Report:
    return report_of(
        Diagnosis(
            "healthy" if one.outcome == "passed" else "at-risk", conclusive=True, ladder=(one,)
        ),
        command="diagnose",
        case="",
    )


def test_all_passed_with_the_line_of_the_ranks_beside_them() -> None:
    one = row(
        {"name": "ranks", "outcome": "passed", "says": "2 ranks agree with one", "took_s": 3.0},
        outcome="passed",
    )
    assert suites_say(one) == "7/7 suites passed"
    text = text_of(report(one))
    assert "model_stress 7/7 suites passed\n" in text
    assert "   ranks          passed    3.0 s  2 ranks agree with one\n" in text
    assert [line.split()[0] for line in map(plain, suite_lines([one], 100)[1:])] == [
        *NAMES,
        "ranks",
    ]


def test_which_did_not_pass_and_how() -> None:
    one = row(masks="failed", tying="skipped", fuzz="not_measured")
    assert (
        suites_say(one) == "4/7 suites passed; masks failed; fuzz did not answer; tying not asked"
    )
    text = text_of(report(one))
    assert "Is it sound? 4/7 suites passed.\n" in text
    assert [line for line in text.split("\n") if line.startswith("   fuzz ")] == [
        "   fuzz           no answer    1.5 s  fuzz tried 12 things"
    ]


def test_text_and_json_say_the_same() -> None:
    one = row(masks="failed")
    told = next(
        each
        for each in json.loads(report_text(report(one)))["ladder"]
        if each["probe"] == "model_stress"
    )["suites"]
    text = text_of(report(one))
    assert [each["name"] for each in told] == list(NAMES)
    assert all(each["says"] in text for each in told)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_asked(width: int) -> None:
    one = row(
        {
            "name": "ranks",
            "outcome": "failed",
            "says": "x" * 300 + " and more words " * 20,
            "took_s": 100.0,
        }
    )
    assert all(len(plain(line)) <= width for line in suite_lines([one], width))


@pytest.mark.parametrize(
    "suites",
    [
        None,
        "text",
        7,
        [],
        [None, 3, "x"],
        [{"name": 3, "outcome": "passed"}],
        [{"name": "shapes", "outcome": "fine"}],
        {"shapes": "passed"},
    ],
)
def test_nonsense_is_no_suite(suites: object) -> None:
    one = LadderRow(88, "model_stress", "failed", extra={"suites": suites})
    assert suites_of(one) == ()
    assert suites_say(one) == ""
    assert suite_lines([one], 100) == []


def test_nothing_that_moves_a_cursor_comes_through() -> None:
    one = LadderRow(
        88,
        "model_stress",
        "failed",
        extra={
            "suites": [
                {
                    "name": "a\x1b[2Jb",
                    "outcome": "passed",
                    "says": "c\r\nd\u202e",
                    "took_s": float("nan"),
                }
            ]
        },
    )
    text = "".join(plain(line) for line in suite_lines([one], 100))
    assert text.isprintable()
