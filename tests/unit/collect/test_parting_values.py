"""The values of ranks that have parted, read from the frames of real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainprobe.case import Case
from trainprobe.collect.collectors.parting_values import (
    FrameValue,
    look_at_parting_values,
    parse_values,
)
from trainprobe.collect.members import Member

Until = Callable[[Callable[[], Any]], Any]
SCRIPT = """
import sys, time
def fit(rows, token):
    writer = object() if sys.argv[1] == "1" else None
    for step, row in enumerate(rows):
        if step == int(sys.argv[1]):
            print("ready", flush=True)
            time.sleep(600)
fit([[1], [2], [3]], "hunter2hunter2")
"""


def test_each_ranks_counter_is_read_and_no_secret(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    children = [
        subprocess.Popen([sys.executable, str(script), str(step)], stdout=subprocess.PIPE)
        for step in (1, 2)
    ]
    try:
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        case = Case.create(str(tmp_path / "case"), "attach", ())
        members = [Member(rank, child.pid) for rank, child in enumerate(children)]
        names = {(str(script), "fit"): ("step", "row", "token", "writer")}

        records = look_at_parting_values(case, "job", members, names, deadline_s=5.0)
    finally:
        for child in children:
            child.kill()
            child.communicate()

    facts = [fact for record in records for fact in parse_values(record)]
    assert [
        (fact.rank, fact.function, fact.name, fact.value)
        for fact in facts
        if isinstance(fact, FrameValue)
    ] == [
        (0, "fit", "step", "1"),
        (0, "fit", "writer", "an object"),
        (1, "fit", "step", "2"),
        (1, "fit", "writer", "None"),
    ]
    assert "hunter2" not in Path(case.folder, "evidence.jsonl").read_text()


def test_nobody_is_asked_for_nothing(tmp_path: Path) -> None:
    case = Case.create(str(tmp_path / "case"), "attach", ())
    assert look_at_parting_values(case, "job", [Member(0, 1)], {}) == []


def test_a_process_that_is_gone_is_refused_with_the_reason(tmp_path: Path) -> None:
    case = Case.create(str(tmp_path / "case"), "attach", ())
    names = {("/job/train.py", "fit"): ("step",)}
    (record,) = look_at_parting_values(case, "job", [Member(0, 2**22 + 7)], names)
    assert (record.outcome, bool(record.reason)) == ("unavailable", True)
    assert parse_values(record) == []
