"""The report of a `ready` that hung: which nodes it leaves out, and what the exit code says."""

from __future__ import annotations

from typing import Any

import pytest

from trainprobe.cli.exit_codes import NODES, UNDETERMINED, ready_code_of
from trainprobe.model.codec import to_json
from trainprobe.model.diagnosis import Report
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject
from trainprobe.report.readiness_section import readiness_of
from trainprobe.report.text import text_of
from trainprobe.report.unfinished import unfinished_report

WORDS = {"count": 4, "nodes": ["n1", "n2", "n3", "n4"], "doing": "judging what was found"}


def silent(host: str, **data: Any) -> dict[str, Any]:
    record = Evidence(
        "E1",
        "node.look",
        Subject("host", host=host),
        "ready",
        outcome="timed_out",
        reason=f"{host} did not answer within 9 s",
        data=data,
    )
    return {"node": to_json(record)}


def left_out(report: Report) -> tuple[list[str], int]:
    return list(readiness_of(report)["exclude"]), ready_code_of(report)


@pytest.mark.parametrize(
    ("words", "rows", "told_s", "want"),
    [
        pytest.param({"answered": "n1"}, [silent("n2")], {}, (["n2"], NODES), id="late"),
        pytest.param({}, [silent("n2")], {}, ([], UNDETERMINED), id="nobody has answered"),
        pytest.param(
            {"answered": "n1"},
            [silent("n2", asked=False)],
            {},
            ([], UNDETERMINED),
            id="was not asked",
        ),
        pytest.param(
            {"answered": "n1", "overdue": ["n3"]},
            [],
            {"overdue": 53.0},
            (["n3"], NODES),
            id="overdue to the end",
        ),
        pytest.param(
            {"answered": "n1", "overdue": ["n3"]},
            [],
            {"overdue": 20.0},
            ([], UNDETERMINED),
            id="the tool itself had ceased to look",
        ),
        pytest.param(
            {"answered": "n1", "overdue": ["n3"]},
            [silent("n2"), {"id": "fs.paths", "state": "fail", "host": "n1", "says": "no /data"}],
            {"overdue": 53.0},
            (["n2", "n3"], 1),
            id="something else is amiss too",
        ),
    ],
)
def test_nodes_without_an_answer_are_left_out(
    words: dict[str, Any],
    rows: list[dict[str, Any]],
    told_s: dict[str, float],
    want: tuple[list[str], int],
) -> None:
    report = unfinished_report({**WORDS, **words}, rows, 54.0, told_s)
    assert left_out(report) == want
    assert not report.conclusive


def test_it_claims_nothing_of_the_nodes_that_stay() -> None:
    words = {**WORDS, "answered": "n1", "scheduler": "slurm"}
    report = unfinished_report(words, [silent("n2"), silent("n3")], 54.0)
    assert report.says.startswith("n[2-3] had given no answer; not known whether the other nodes")
    text = text_of(report)
    assert "--exclude=n[2-3]" in text
    assert "the rest is ready without" not in text
