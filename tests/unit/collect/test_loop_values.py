"""Values of a process that works alone, read from the frames of real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trainprobe.case import Case
from trainprobe.collect.collectors.loop_values import (
    LoopValue,
    look_at_loop_values,
    parse_values,
    values_seen,
)
from trainprobe.collect.members import Member

GETS_ON = """
def fit(rows, token):
    print("ready", flush=True)
    done = 0
    while done < rows:
        done += 1
fit(10**12, "hunter2hunter2")
"""
GOES_ROUND = """
def fit(rows, size):
    print("ready", flush=True)
    batch = []
    while len(batch) < size:
        row = rows.pop(0)
        rows.append(row)
fit([3, 1, 2], 4)
"""


@contextmanager
def running(script: Path, text: str) -> Iterator[int]:
    script.write_text(text)
    child = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        yield child.pid
    finally:
        child.kill()
        child.communicate()


def read(tmp_path: Path, text: str) -> tuple[str, dict[str, LoopValue]]:
    case = Case.create(str(tmp_path / "case"), "attach", ())
    with running(tmp_path / "train.py", text) as pid:
        (record,) = look_at_loop_values(case, "job", Member(0, pid), span_s=2.0, deadline_s=20.0)
    assert record.outcome == "ok", record.reason
    facts = [fact for fact in parse_values(record) if isinstance(fact, LoopValue)]
    kept = (tmp_path / "case" / "evidence.jsonl").read_text()
    return kept, {fact.name: fact for fact in facts if fact.function == "fit"}


def test_a_counter_moves_on_and_no_value_is_kept(tmp_path: Path) -> None:
    kept, values = read(tmp_path, GETS_ON)

    assert values["done"].changes
    assert values["done"].returns == 0
    assert not values["rows"].changes
    assert "hunter2" not in kept


def test_what_a_loop_tries_again_and_again_comes_back(tmp_path: Path) -> None:
    _, values = read(tmp_path, GOES_ROUND)

    assert values["row"].returns >= 1
    assert not values["batch"].changes
    assert not values["batch"].opaque


def test_a_process_that_is_gone_is_a_refusal(tmp_path: Path) -> None:
    case = Case.create(str(tmp_path / "case"), "attach", ())

    (record,) = look_at_loop_values(case, "job", Member(0, 2**22 + 7), span_s=0.1, deadline_s=2.0)

    assert record.outcome == "unavailable"
    assert parse_values(record) == []


@pytest.mark.parametrize(
    ("shown", "opaque"),
    [(["1", "2"], False), (["<Deque at 0x1>"] * 2, True), (["[1, 2, ...]"] * 2, True)],
)
def test_objects_and_lists_shown_in_part_are_opaque(shown: list[str], opaque: bool) -> None:
    place = (3, "/job/train.py", "fit")

    (row,) = values_seen([{place: {"x": one}} for one in shown])

    assert row["opaque"] is opaque
