"""Judging takes time in proportion to the ranks: no cause looks at all facts for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.gather import gathered, made
from trainprobe.facts import Facts
from trainprobe.pipelines import explain


class Counted(tuple[Any, ...]):
    """Facts that count how often one of them is looked at."""

    __slots__ = ()
    looks = 0

    def __iter__(self) -> Iterator[Any]:
        for fact in super().__iter__():
            Counted.looks += 1
            yield fact


def looks(folder: Path, nodes: int) -> int:
    folder.mkdir()
    made(folder, nodes, 20)
    assert gathered(folder, nodes).report["verdict"] == "hung"
    Counted.looks = 0
    report = explain(str(folder / "case"))
    assert report.causes[0].ranks == (20,)
    return Counted.looks


def test_four_times_the_ranks_are_four_times_the_facts_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = Facts.of
    monkeypatch.setattr(Facts, "of", lambda *args, **words: Counted(of(*args, **words)))
    few, many = looks(tmp_path / "few", 5), looks(tmp_path / "many", 20)
    assert many < 5 * few, (few, many)
