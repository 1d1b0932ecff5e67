"""Records of one form, sent and kept together: nothing of them is lost, and no secret gets by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import Evidence
from trainprobe.model.record_classes import (
    LazyData,
    RecordClass,
    classes_of,
    form_of,
    read_class,
)
from trainprobe.model.subjects import Subject
from trainprobe.redact import Redactor
from trainprobe.saved_case import read_case

SECRET = "hf_" + "aB3dE5fG7h" * 3


def rank(number: int, **data: Any) -> Evidence:
    return Evidence(
        f"E{number + 1}",
        "process",
        Subject("rank", host="node1", rank=number, pid=40 + number, role="rank"),
        "job",
        "/proc",
        1000.5 + number,
        0.25,
        data={"pid": 40 + number, "state": "S", "threads": [{"tid": 7, "name": "a"}], **data},
    )


def classes(*records: Evidence) -> list[tuple[RecordClass, list[int]]]:
    """As they come out of a node's answer."""
    rows = [json.loads(json.dumps(row)) for row in classes_of(map(to_json, records))]
    return [(read_class(row), row["at"]) for row in rows]


DATA: list[dict[str, Any]] = [
    {"n": 1, "same": "x", "rows": [{"a": 1, "b": None}, {"a": 2, "b": "y"}], "empty": []},
    {"n": True, "same": "x", "rows": [{"a": 3, "b": None}], "empty": []},
    {"n": 1.0, "same": "x", "rows": [], "empty": []},
    {"n": None, "same": "x", "rows": [{"a": 1}, {"c": [1, 2]}], "empty": {}},
    {"n": [1, "two", None], "deep": [[[{"x": []}]], 3], "": 0, "rows": ["rows", "n"]},
]


def test_records_come_back_as_they_were() -> None:
    rows = [to_json(rank(number, **data)) for number, data in enumerate(DATA * 2)]
    found: dict[int, Any] = {}
    for row in json.loads(json.dumps(list(classes_of(rows)))):
        found.update(zip(row["at"], read_class(row).rows(), strict=True))
    # as text: True, 1 and 1.0 are equal
    assert [json.dumps(found[place]) for place in sorted(found)] == [
        json.dumps(row) for row in rows
    ]


def test_what_ranks_share_is_sent_once() -> None:
    records = [rank(number, where="train.py:30 in step " * 20) for number in range(8)]
    alone = sum(len(json.dumps(to_json(record))) for record in records)
    together = [json.dumps(row) for row in classes_of(map(to_json, records))]
    assert len(together) == 1
    assert len(together[0]) < alone / 4


def test_evidence_of_a_class_is_evidence() -> None:
    records = [rank(number, **data) for number, data in enumerate(DATA)]
    found = [
        (place, record)
        for one, at in classes(*records)
        for place, record in zip(at, one.evidence(), strict=True)
    ]
    assert [to_json(record) for _, record in sorted(found, key=lambda each: each[0])] == [
        to_json(record) for record in records
    ]


def test_pids_in_a_class_get_their_host_where_those_of_a_record_do() -> None:
    data = {
        "peer_pid": 9,
        "pids": [1, 2],
        "sites": [{"pid": 3, "line": 3}] * 2,
        "none": {"ppid": 4},
    }
    ((one, _),) = classes(rank(0, **data))
    told = one.evidence()[0].data
    assert isinstance(told, LazyData)
    seen = told.whole(
        lambda value: [-each for each in value] if isinstance(value, list) else -value
    )
    assert (seen["pid"], seen["peer_pid"], seen["pids"]) == (-40, -9, [-1, -2])
    assert seen["sites"] == [{"pid": -3, "line": 3}] * 2
    assert (seen["none"], seen["threads"]) == ({"ppid": -4}, [{"tid": 7, "name": "a"}])
    assert told.table("sites") == {"pid": [3, 3], "line": [3, 3]}
    assert told.table("threads") == {"tid": [7], "name": ["a"]}
    assert told.table("state") is None


@pytest.mark.parametrize(
    "row",
    [
        {"form": '{"a": 0}', "columns": [[1, 2]], "at": [0, 1, 2]},
        {"form": '{"a": 0}', "columns": [], "at": [0]},
        {"form": '{"a": 0}', "columns": [3], "at": [0]},
        {"form": '{"a": 1}', "columns": [[1]], "at": [0]},
        {"form": "[0]", "columns": [[1]], "at": [0]},
        {"form": "{", "columns": [], "at": [0]},
        {"form": '{"a": ' * 200 + "0" + "}" * 200, "columns": [[1]], "at": [0]},
        {"form": '{"a": ' * 9000 + "0" + "}" * 9000, "columns": [[1]], "at": [0]},
        {"form": '{"a": 0}', "columns": [[1]], "count": 10**9},
        {"form": '{"a": 0}', "columns": [[1]], "count": 0},
        {"form": '{"a": 0}', "columns": [[1]], "count": True},
        {"form": '{"a": ["rows"]}', "columns": [[[2]]], "at": [0]},
        {"form": '{"a": ["rows", "b"]}', "columns": [[[10**9, [1]]]], "at": [0]},
        {"form": '{"a": ["rows", "b"]}', "columns": [[[10**5, [1]]]], "count": 10**5},
        {"form": '{"a": ["rows", "b"]}', "columns": [[[2, [1, 2, 3]]]], "at": [0]},
        {"form": '{"a": ["rows", "b"]}', "columns": [["x"]], "at": [0]},
        {"form": 7, "columns": [], "at": [0]},
    ],
)
def test_what_is_no_class_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are for nobody
        read_class(row)


@pytest.mark.parametrize(
    "change",
    [{"outcome": "denied"}, {"outcome": "fine"}, {"began": "now"}, {"subject": {"kind": "moon"}}],
)
def test_a_class_of_something_else_is_no_evidence(change: dict[str, Any]) -> None:
    row = to_json(rank(0))
    row = {**row, **change, "subject": {**row["subject"], **change.get("subject", {})}}
    (line,) = classes_of([row])
    with pytest.raises(ValueError, match=r"type|reason"):
        read_class(line).evidence()


def kept_together(folder: Path, *records: Evidence) -> tuple[Case, list[Any]]:
    """A case that was given classes, and what a case given the same one by one holds."""
    with Case.create(str(folder / "alone"), "attach", ()) as alone:
        for record in records:
            alone.keep(record)
    case = Case.create(str(folder / "together"), "attach", ())
    case.keep_classes(classes(*records))
    case.close()
    return case, [to_json(record) for record in alone.evidence]


@pytest.mark.parametrize("data", [{}, {"note": f"token={SECRET}"}, {"HF_TOKEN": SECRET}])
def test_a_case_of_classes_holds_what_the_records_alone_would(
    tmp_path: Path, data: dict[str, Any]
) -> None:
    records = [
        rank(0),
        rank(1, sites=[{"line": 1}, {"line": 2}]),
        rank(2, **data),
        rank(3, sites=[{"line": 3}]),
    ]
    case, alone = kept_together(tmp_path, *records)
    saved = read_case(case.folder)
    assert [to_json(record) for record in case.evidence] == alone
    assert [to_json(record) for record in saved.evidence] == alone
    assert (saved.damage, case.trouble) == ([], "")
    assert SECRET not in Path(case.folder, "evidence.jsonl").read_text(encoding="utf-8")
    assert SECRET not in json.dumps(alone)


def test_a_form_hides_no_words_under_a_name_that_comes_again(tmp_path: Path) -> None:
    ((one, _),) = classes(rank(0))
    form = one.form.text.replace('"state": 0', f'"state": {{"{SECRET}": 0}}, "state": 0')
    row = {"form": form, "columns": one.columns, "count": 1}
    with Case.create(str(tmp_path / "case"), "attach", ()) as case:
        case.keep_classes([(read_class(row), [0])])
    assert case.evidence[0].data["state"] == "S"
    assert SECRET not in (tmp_path / "case" / "evidence.jsonl").read_text(encoding="utf-8")


def test_lines_of_classes_take_less_room_and_say_so(tmp_path: Path) -> None:
    case, _ = kept_together(tmp_path, *(rank(number) for number in range(64)))
    alone = tmp_path / "alone"
    sizes = [
        len(Path(folder, "evidence.jsonl").read_bytes()) for folder in (case.folder, str(alone))
    ]
    assert sizes[0] < sizes[1] / 4
    schemas = [
        json.loads(Path(folder, "case.json").read_text(encoding="utf-8"))["schema"]
        for folder in (case.folder, str(alone))
    ]
    assert schemas == ["trainprobe.case/2", "trainprobe.case/1"]


def test_evidence_that_was_given_away_is_gone(tmp_path: Path) -> None:
    with Case.create(str(tmp_path / "case"), "attach", ()) as case:
        case.keep_classes(classes(rank(0), rank(1)))
        given = [record.subject.rank for record in case.give_away()]
        case.add("late")
        assert (given, case.evidence) == ([0, 1], ())


VALUES: list[tuple[str, Any]] = [
    ("name", "python"),
    ("name", f"--token {SECRET}"),
    ("name", "\x1b[31mred"),
    ("name", "two\nlines"),
    ("HF_TOKEN", SECRET),
    ("HF_TOKEN", "<hidden:HF_TOKEN>"),
    ("HF_TOKEN", ""),
    ("password", "short"),
    ("value", "kJ8sQ2xV9bN4mC7zL1pR5tY3"),
    ("commit", "kJ8sQ2xV9bN4mC7zL1pR5tY3"),
    ("argv", ["train.py", "--token", "some-word"]),
    ("argv", ["train.py", "--lr", "3"]),
    ("argv", ["mysql", "-phunter22"]),
    ("at", float("inf")),
    ("at", float("nan")),
    ("at", 1e308),
    ("url", "https://me:secret99@host/x"),
    ("odd", {"HF_TOKEN": SECRET}),
    ("odd", [{"HF_TOKEN": SECRET}]),
    ("n", 10**400),
]


@pytest.mark.parametrize(("name", "value"), VALUES)
def test_what_would_be_hidden_is_never_passed_over(name: str, value: Any) -> None:
    before = {name: value}
    shown, count = Redactor({}).data(before)
    passed = Redactor({}).has_nothing_in([("", [name]), (name, [value, value])])
    assert not passed or (count == 0 and json.dumps(shown) == json.dumps(before))
    harmless = isinstance(value, (str, int, list)) and count == 0 and shown == before
    if harmless and "odd" not in name:
        assert passed, "else every record would be looked at one by one"


@pytest.mark.parametrize(("name", "value"), VALUES)
def test_what_was_harmless_under_another_name_is_not_passed_over(name: str, value: Any) -> None:
    redactor = Redactor({})
    shown, count = redactor.data({name: value})
    redactor.has_nothing_in([("state", [value])])
    passed = redactor.has_nothing_in([(name, [value])])
    assert not passed or (count == 0 and json.dumps(shown) == json.dumps({name: value}))


def test_one_record_with_a_secret_is_found_among_the_classes_of_a_node(tmp_path: Path) -> None:
    plain, other = rank(0), rank(1, extra={"more": f"token={SECRET}"})
    case = Case.create(str(tmp_path / "case"), "attach", [])
    case.keep_classes(classes(plain, other))
    case.close()
    saved = read_case(str(tmp_path / "case"))
    assert [record.subject.rank for record in saved.evidence] == [0, 1]
    assert SECRET not in (tmp_path / "case" / "evidence.jsonl").read_text()


def test_records_of_a_class_share_what_is_the_same_and_can_be_asked_again() -> None:
    stacks = [{"name": "main", "frames": [{"file": "train.py", "line": 3}]}]
    records = [rank(number, stacks=stacks, of={"a": {"b": 1}}) for number in range(3)]
    ((of_class, _),) = classes(*records)
    first, *others = [LazyData(of_class, place).whole() for place in range(3)]
    assert all(one["stacks"] is first["stacks"] and one["of"] is first["of"] for one in others)
    assert [one["pid"] for one in (first, *others)] == [40, 41, 42]
    assert LazyData(of_class, 1).whole() == others[0]
    wrapped = [LazyData(of_class, place).whole(lambda pid: -pid) for place in (2, 0)]
    assert [one["pid"] for one in wrapped] == [-42, -40]
    assert LazyData(of_class, 0).whole()["pid"] == 40


def test_what_was_packed_comes_back_as_it_was() -> None:
    ((of_class, _),) = classes(*(rank(number, text="x" * 70_000) for number in range(2)))
    before = json.dumps(of_class.columns)
    line = json.loads(of_class.line())
    assert json.dumps(of_class.columns) == before == json.dumps(line["columns"])


def test_a_secret_that_became_known_later_is_found_in_words_that_were_harmless() -> None:
    redactor = Redactor({})
    column = [("name", ["correct-horse-1"])]
    assert redactor.has_nothing_in(column)
    redactor.learn({"DB_PASSWORD": "correct-horse-1"})
    assert not redactor.has_nothing_in(column)


def test_a_form_is_read_once() -> None:
    text = '{"a": 0}'
    assert form_of(text) is form_of(text)
