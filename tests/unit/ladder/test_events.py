"""Event lines: whatever a probe writes there, reading it brings back what can be understood and
counts the rest.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.ladder import events
from trainprobe.ladder.events import Events, parse


def lines(*rows: dict[str, object]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_the_last_result_is_the_answer_and_the_open_phase_is_named() -> None:
    said = parse(
        lines(
            {"event": "phase.begin", "name": "init"},
            {"event": "phase.end", "name": "init"},
            {"event": "phase.begin", "name": "barrier"},
            {"event": "result", "answer": "no", "says": "first"},
            {"event": "result", "answer": "yes", "says": "then"},
        )
    )

    assert said.answer == ("yes", "then")
    assert said.open_phase == "barrier"


def test_an_answer_that_is_none_does_not_count() -> None:
    assert parse(lines({"event": "result", "answer": "perhaps"})).answer == ("", "")


def test_nonsense_between_good_lines_is_counted_and_shown() -> None:
    said = parse(
        lines({"event": "note", "says": "a"})
        + b"\xff\xfe{{{\n[1, 2]\n42\n"
        + lines({"event": "result", "answer": "yes"})
        + b'{"event": "no'
    )

    assert len(said.events) == 2
    assert said.bad_lines == 4
    assert said.bad_sample.endswith("{{{")
    assert said.answer[0] == "yes"


def test_measures_without_a_number_are_left_out_and_nan_is_none() -> None:
    said = parse(
        b'{"event":"measure","name":"a","value":1.5,"unit":"s","threshold":2}\n{"event":"measure","name":"b","value":NaN}\n{"event":"measure","name":"c","value":true}\n'
    )

    assert [
        (row["name"], row["value"], row["unit"], row["threshold"]) for row in said.measures()
    ] == [("a", 1.5, "s", 2.0)]


def test_numbers_that_nothing_can_hold_are_none() -> None:
    huge = b"9" * 400
    said = parse(
        b'{"event":"measure","name":"a","value":%s}\n{"event":"measure","name":"b","value":1e999}\n{"event":"fail","line":%s,"n":-7}\n'
        % (huge, huge)
    )

    assert said.measures() == []
    assert said.bad_lines == 0
    assert (said.events[2]["line"], said.events[2]["n"]) == (None, -7)


def test_a_flood_keeps_the_beginning_and_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "READ_CAP_BYTES", 4096)
    path = tmp_path / "events"
    path.write_bytes(
        lines(
            {"event": "phase.begin", "name": "start"},
            *({"event": "note", "n": n} for n in range(2000)),
            {"event": "result", "answer": "yes"},
        )
    )

    said = events.read(str(path))

    assert said.cut
    assert said.bad_lines == 0
    assert said.events[0]["name"] == "start"
    assert said.answer[0] == "yes"


def test_too_many_events_are_cut_in_the_middle() -> None:
    said = parse(lines(*({"event": "note", "n": n} for n in range(5000))))

    assert len(said.events) == events.EVENTS_CAP
    assert (said.events[0]["n"], said.events[-1]["n"], said.cut) == (0, 4999, True)


def test_no_file_is_no_events(tmp_path: Path) -> None:
    assert events.read(str(tmp_path / "none")) == Events()
    assert events.read(str(tmp_path)) == Events()


@given(st.binary(max_size=2000))
def test_any_bytes_can_be_read(content: bytes) -> None:
    said = parse(content)

    assert said.bad_lines + len(said.events) == sum(
        1 for line in content.split(b"\n") if line.strip()
    )
    assert isinstance(said.answer, tuple)
    assert isinstance(said.measures(), list)
