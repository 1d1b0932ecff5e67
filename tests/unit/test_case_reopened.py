"""A case that is opened again: what is added comes behind what is there, whatever became of its
last line.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainprobe.case import Case
from trainprobe.errors import UsageError
from trainprobe.saved_case import read_case


@pytest.fixture
def folder(tmp_path: Path) -> str:
    name = str(tmp_path / "case")
    with Case.create(name, "diagnose", ["--nproc", "2"]) as case:
        case.add("plan", data={"nproc": 2})
        case.add("rung", cell="host@1")
    return name


def evidence_of(folder: str) -> Path:
    return Path(folder) / "evidence.jsonl"


def test_ids_go_on_and_everything_is_read_again(folder: str) -> None:
    with Case.reopen(folder) as case:
        assert [one.id for one in case.evidence] == ["E1", "E2"]
        assert case.add("rung", cell="user_script@1").id == "E3"
        assert case.keep_file("out.txt", b"x") == "files/out.txt"
    saved = read_case(folder)

    assert [one.id for one in saved.evidence] == ["E1", "E2", "E3"]
    assert saved.damage == []


def test_a_torn_last_line_is_cut_off(folder: str) -> None:
    whole = evidence_of(folder).read_bytes()
    evidence_of(folder).write_bytes(whole + b'{"id": "E3", "kind": "ru' + b"x" * 200_000)
    with Case.reopen(folder) as case:
        assert case.add("rung").id == "E3"

    assert evidence_of(folder).read_bytes().startswith(whole)
    assert read_case(folder).damage == []


def test_ids_of_lines_that_cannot_be_read_in_the_middle_are_not_used_again(folder: str) -> None:
    first, second = evidence_of(folder).read_bytes().splitlines(keepends=True)
    evidence_of(folder).write_bytes(b"nonsense\n" + second.replace(b'"E2"', b'"E7"') + first)
    with Case.reopen(folder) as case:
        assert case.add("rung").id == "E8"


def test_a_case_that_somebody_writes_is_left_alone(folder: str) -> None:
    with (
        Case.reopen(folder),
        pytest.raises(UsageError, match="another trainprobe is writing into it"),
    ):
        Case.reopen(folder)
    Case.reopen(folder).close()


def test_a_folder_that_is_no_case_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "evidence.jsonl").write_text("mine")
    with pytest.raises(UsageError, match="is not a case"):
        Case.reopen(str(tmp_path))

    assert (tmp_path / "evidence.jsonl").read_text() == "mine"
    assert os.listdir(tmp_path) == ["evidence.jsonl"]


def test_evidence_that_is_a_link_is_not_followed(folder: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    evidence_of(folder).rename(elsewhere)
    evidence_of(folder).symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    with pytest.raises(UsageError, match="cannot be continued"):
        Case.reopen(folder)

    assert elsewhere.read_bytes() == before
