"""The timeline of explained logs, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.waits.logs_by_hand import STEPS, closed, table, traceback
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain
from trainprobe.report.json_report import read_report, report_text
from trainprobe.report.text import text_of

LOG = (
    STEPS
    + closed(0)
    + traceback("KeyError", "'label'", prefix="[rank1]: ")
    + closed(2)
    + table((1, 1), (0, 1), (2, 1))
)


def test_far_and_how_each_rank_ended_and_in_which_order(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(LOG, encoding="utf-8")
    text = text_of(explain(str(path)))
    timeline = text[text.index("timeline") :]
    assert "step 5 of 100 · exit code 1" in timeline
    assert timeline.index("ranks 0 and 2") < timeline.index("rank 1 raised KeyError")
    assert "job.log:19" in timeline
    assert timeline.count("lost the connection to a peer") == 1
    assert "Connection closed by peer" not in timeline


def test_as_many_events_as_were_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(LOG, encoding="utf-8")
    text = text_of(explain(ExplainRequest(paths=(str(path),), max_events=1)))
    assert "2. " not in text[text.index("timeline") :]
    assert "more kinds of failure; all are in the JSON" in text


def test_the_json_has_the_whole_timeline_and_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(LOG, encoding="utf-8")
    report = explain(str(path))
    (attempt,) = json.loads(report_text(report))["timeline"]
    assert [event["ranks"] for event in attempt["events"] if not event["echo"]] == [[1]]
    assert {event["echo_of"] for event in attempt["events"] if event["echo"]} >= {
        "connection-closed"
    }
    assert text_of(read_report(report_text(report))) == text_of(report)


def test_control_characters_stay_out(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(
        STEPS + "[rank0]: ValueError: red \x1b[31m\x07 and \u202eback\n", encoding="utf-8"
    )
    report = explain(str(path))
    assert "raised ValueError" in report.says
    for text in (text_of(report), report_text(report)):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
