"""One report over many nodes, whose answers come from local processes that stand in for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.gather import EACH, LIMIT_MB, LIMIT_S, gathered, made, name, wrong


@pytest.mark.parametrize(("nodes", "stuck"), [(32, 131), pytest.param(256, 1301, marks=pytest.mark.soak)])
def test_the_one_stuck_rank_of_many_nodes_is_named_in_time(tmp_path: Path, nodes: int, stuck: int) -> None:
    made(tmp_path, nodes, stuck)
    found = gathered(tmp_path, nodes)
    assert (wrong(found, nodes, stuck), found.took_s < LIMIT_S, found.peak_mb < LIMIT_MB) == ("", True, True)


def test_the_answers_of_the_nodes_differ_in_host_rank_and_process(tmp_path: Path) -> None:
    made(tmp_path, 4, 2 * EACH + 5)
    found = [(tmp_path / f"{name(place)}.jsonl").read_text(encoding="utf-8") for place in range(4)]
    assert [f'"host": "{name(place)}"' in text for place, text in enumerate(found)] == [True] * 4
    assert ['"rank": 21,' in text and '"kind": "FLOCK", "mode": "WRITE", "pid": ' in text for text in found] == [False, False, True, False]
