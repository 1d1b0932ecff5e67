"""What hours of a watch leave in the case, in memory and on the disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainprobe.attach.kept_looks import AT_A_TIME, LAST_LOOKS, MOST_CHANGES, KeptLooks
from trainprobe.case import Case
from trainprobe.collect.members import Member
from trainprobe.saved_case import read_case

RANKS = (Member(0, 70, "rank", 5), Member(1, 71, "rank", 6))
CELL = "job"


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    with Case.create(str(tmp_path / "case"), "attach", []) as made:
        yield made


def look(case: Case, number: int, lines: tuple[int, int], states: str = "SS") -> None:
    """Both ranks, each in its line."""
    for member, state in zip(RANKS, states, strict=True):
        base = {"look": number, "pid": member.pid}
        case.add("process", subject=member.subject, cell=CELL, data={**base, "state": state})
    for member, line in zip(RANKS, lines, strict=True):
        frames = [{"name": "step", "file": "train.py", "line": line}]
        data = {"look": number, "threads": [{"os_thread_id": member.pid, "frames": frames}]}
        case.add("stacks.python", subject=member.subject, cell=CELL, data=data)


def watch(case: Case, lines: list[tuple[int, int]]) -> KeptLooks:
    look(case, 1, (1, 1))
    look(case, 2, (1, 1))
    kept = KeptLooks(case, CELL)
    for number, both in enumerate(lines, 3):
        look(case, number, both)
        kept.add(number)
    kept.forget()
    return kept


def numbers(case: Case) -> list[int]:
    stacks = [one for one in case.evidence if one.kind == "stacks.python" and not one.subject.rank]
    return [one.data["look"] for one in stacks]


def test_looks_that_are_alike_are_counted(case: Case) -> None:
    watch(case, [(1, 1)] * 150)
    assert numbers(case) == [1, 2, *range(153 - LAST_LOOKS, 153)]
    (told,) = [one for one in case.evidence if one.kind == "watch"]
    assert told.data == {"looks": 150, "left_out_alike": 150 - LAST_LOOKS, "left_out": 0}


def test_a_change_stays(case: Case) -> None:
    watch(case, [(1, 1)] * 50 + [(1, 9)] * 50 + [(1, 1)] * 50)
    assert numbers(case) == [1, 2, 53, 103, *range(153 - LAST_LOOKS, 153)]


def test_of_many_changes_some_stay_from_all_of_the_time(case: Case) -> None:
    watch(case, [(number, number) for number in range(400)])
    found = numbers(case)
    assert len(found) <= 2 + MOST_CHANGES + LAST_LOOKS
    assert found[:3] == [1, 2, 3]
    assert any(100 < number < 390 for number in found)


def test_the_look_at_which_a_rank_came_to_a_stop_stays(case: Case) -> None:
    came = 100
    watch(case, [(min(number, came), number) for number in range(1, 400)])
    assert came + 2 in numbers(case)


def test_a_rank_that_is_stopped_has_changed(case: Case) -> None:
    look(case, 1, (1, 1))
    kept = KeptLooks(case, CELL)
    for number in range(2, 102):
        look(case, number, (1, 1), "ST" if number > 50 else "SS")
        kept.add(number)
    kept.forget()
    assert 51 in numbers(case)


def test_memory_and_the_folder_stay_small_at_each_moment(case: Case) -> None:
    look(case, 1, (1, 1))
    kept, most = KeptLooks(case, CELL), 0
    for number in range(2, 300):
        look(case, number, (number, number))
        kept.add(number)
        most = max(most, len(case.evidence))
    assert most <= 4 * (2 + 2 * MOST_CHANGES + LAST_LOOKS + AT_A_TIME)
    lines = (Path(case.folder) / "evidence.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [one.id for one in case.evidence]
    assert not read_case(case.folder).damage


def test_a_source_file_that_cannot_be_read_piles_up_no_refusals(case: Case) -> None:
    look(case, 1, (1, 1))
    kept = KeptLooks(case, CELL)
    for number in range(2, 202):
        look(case, number, (1, 1))
        case.add("source", cell=CELL, outcome="unavailable", reason="x", data={"sites": []})
        kept.add(number)
    case.add("source", cell=CELL, data={"file": "train.py", "sites": [{"line": 1}]})
    kept.add(202)
    kept.forget()
    sources = [one for one in case.evidence if one.kind == "source"]
    assert len(sources) <= LAST_LOOKS + 1
    assert sources[-1].data["sites"]


def test_who_has_ended_holds_no_look(case: Case) -> None:
    came = 20
    look(case, 1, (1, 1))
    kept = KeptLooks(case, CELL)
    for number in range(2, 200):
        look(case, number, (min(number, came), number))
        kept.add(number)
        if number == 30:
            kept.lose([RANKS[0]])
    assert not kept._came.keys() - {(71, 6), (70, 5)}
    kept.lose(RANKS)
    assert not kept._came
    assert not kept._stood


def test_what_was_there_before_the_watch_stays(case: Case) -> None:
    before = case.add("sockets", cell=CELL, data={"connections": []})
    watch(case, [(1, 1)] * 100)
    assert before in case.evidence
    assert numbers(case)[:2] == [1, 2]
