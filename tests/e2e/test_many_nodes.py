"""One report over many nodes, whose answers come from local processes that stand in for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.gather import EACH, gathered, made, name, wrong


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
    found = [(tmp_path / f"{name(place)}.jsonl").read_text(encoding="utf-8") for place in range(4)]
    assert [f'"host": "{name(place)}"' in text for place, text in enumerate(found)] == [True] * 4
    assert [
        '"rank": 21,' in text and '"kind": "FLOCK", "mode": "WRITE", "pid": ' in text
        for text in found
    ] == [False, False, True, False]
