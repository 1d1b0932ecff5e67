"""The report as JSON: there and back, valid by its schema, and never a number that JSON does not
know.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace

import jsonschema
import pytest

from tests.unit.report import handmade
from trainprobe.model.codec import to_json
from trainprobe.model.diagnosis import (
    Diagnosis,
    LadderRow,
    Measure,
    Report,
    Suspect,
    TimelineAttempt,
)
from trainprobe.report.json_report import read_report, report_of, report_text
from trainprobe.report.schema import docstring_of, report_schema, schema_text, shapes_of

VALIDATOR = jsonschema.Draft202012Validator(report_schema())


@pytest.mark.parametrize("name", handmade.ALL)
def test_there_and_back(name: str) -> None:
    assert read_report(report_text(handmade.ALL[name])) == handmade.ALL[name]


@pytest.mark.parametrize("name", handmade.ALL)
def test_valid_by_the_published_schema(name: str) -> None:
    VALIDATOR.validate(json.loads(report_text(handmade.ALL[name])))


def test_the_schema_is_itself_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text()))


def test_the_schema_refuses_what_is_no_report() -> None:
    good = to_json(handmade.HUNG)
    for wrong in (
        {**good, "verdict": "fine"},
        {**good, "schema": "trainprobe.report/2"},
        {**good, "causes": None},
        {key: value for key, value in good.items() if key != "conclusive"},
        {**good, "ladder": [{**good["ladder"][0], "outcome": "ok"}]},
    ):
        assert not VALIDATOR.is_valid(wrong)


def test_a_newer_version_may_add_fields() -> None:
    assert VALIDATOR.is_valid({**to_json(handmade.HUNG), "new": 1})


def test_a_measure_that_is_no_number_is_left_out() -> None:
    row = LadderRow(
        1,
        "p",
        "passed",
        measures=(Measure("a", math.nan), Measure("b", math.inf), Measure("c", 1.0)),
    )
    report = report_of(
        Diagnosis("healthy", conclusive=True, ladder=(row,)), command="diagnose", case=""
    )
    assert [
        measure["name"] for measure in json.loads(report_text(report))["ladder"][0]["measures"]
    ] == ["c"]


def test_text_is_ascii_whatever_was_found() -> None:
    text = report_text(replace(handmade.HUNG, says="\ud800 \u202e …"))
    assert text.isascii()
    assert json.loads(text)["says"] == "\ud800 \u202e …"


def test_what_is_not_a_report_is_refused_with_the_field() -> None:
    with pytest.raises(ValueError, match="verdict"):
        read_report(report_text(handmade.HUNG).replace('"verdict": "hung"', '"verdict": "odd"'))


def test_every_shape_is_in_the_schema() -> None:
    names = {kind.__name__ for top in (Report, TimelineAttempt) for kind in shapes_of(top)} - {
        "Report"
    }
    assert names == set(report_schema()["$defs"])
    assert docstring_of(Suspect).startswith("Where the trouble sits")
