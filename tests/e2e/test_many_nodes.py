"""One report over many nodes, whose answers come from local processes that stand in for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bench.gather import EACH, gathered, made, name, wrong
from trainprobe.attach.nodes import accepted
from trainprobe.model.evidence import Evidence
from trainprobe.nodes.answers import read_answer


@pytest.mark.parametrize(
    ("nodes", "stuck"), [(32, 131), pytest.param(256, 1301, marks=pytest.mark.soak)]
)
def test_the_one_stuck_rank_of_many_nodes_is_named(tmp_path: Path, nodes: int, stuck: int) -> None:
    made(tmp_path, nodes, stuck)
    assert not wrong(
        gathered(tmp_path, nodes), nodes, stuck
    )  # its time and memory are for the bench: a child counts what its large parent held


def test_the_answers_of_the_nodes_differ_in_host_rank_and_process(tmp_path: Path) -> None:
    made(tmp_path, 4, 2 * EACH + 5)
    found = [records(tmp_path / f"{name(place)}.jsonl") for place in range(4)]
    assert [{one.subject.host for one in answer} for answer in found] == [
        {name(place)} for place in range(4)
    ]
    assert [
        any(one.subject.rank == 21 for one in answer)
        and any(lock["path"].endswith("shared.lock") for lock in held(answer))
        for answer in found
    ] == [False, False, True, False]


def records(path: Path) -> list[Evidence]:
    answer = read_answer(path.read_bytes(), accepted())
    return [one for alike, _ in answer.classes for one in alike.evidence()]


def held(answer: list[Evidence]) -> list[Any]:
    return [lock for one in answer if one.kind == "locks" for lock in one.data["held"]]
