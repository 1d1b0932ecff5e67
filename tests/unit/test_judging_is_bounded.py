"""No size of a job, and no nonsense in its evidence, makes judging raise or take long. CPU time
is measured: the machine may be busy.
"""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest

from trainprobe.model.codec import from_json
from trainprobe.model.diagnosis import Report
from trainprobe.model.evidence import Evidence
from trainprobe.pipelines import conclude
from trainprobe.report.json_report import report_text
from trainprobe.report.text import text_of
from trainprobe.stacks.stack_text import parse_stack_text

CASE = Path(__file__).resolve().parents[1] / "cases" / "attach-lock-held-outside"
Row = dict[str, Any]


@pytest.fixture
def rows() -> list[Row]:
    return [
        json.loads(line)
        for line in (CASE / "evidence.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def judged(rows: list[Row], within_s: float) -> Report:
    records = [from_json(Evidence, row) for row in json.loads(json.dumps(rows))]
    began = time.process_time()
    report = conclude(records, "attach", "case")
    text = text_of(report) + report_text(report)
    took = time.process_time() - began
    assert took < within_s, f"{took:.1f} s"
    assert not any(" failed in its " in says for says in report.unexplained), report.unexplained
    assert [letter for letter in text if ord(letter) < 32 and letter != "\n"] == []
    return report


def of_kind(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["kind"] == kind]


def many(rows: list[Row], count: int) -> list[Row]:
    """A job of `count` ranks, every seventh at a line of its own."""
    job = copy.deepcopy(of_kind(rows, "job")[0])
    one = job["data"]["ranks"][0]
    job["data"].update(
        world_size=count,
        ranks=[
            {**one, "rank": rank, "local_rank": rank, "pid": 1000 + rank} for rank in range(count)
        ],
    )
    made = [job]
    for kind in ("stacks.python", "process"):
        row = next(row for row in of_kind(rows, kind) if row["subject"]["role"] == "rank")
        for look in (1, 2):
            for rank in range(count):
                new = copy.deepcopy(row)
                new.update(
                    id=f"E{len(made) + 1}",
                    subject={**row["subject"], "rank": rank, "pid": 1000 + rank},
                )
                new["data"].update(pid=1000 + rank, look=look)
                if kind == "stacks.python" and rank % 7 == 0:
                    new["data"]["threads"][0]["frames"][:3] = [
                        {"name": f"own_{rank}", "file": f"/job/part_{rank}.py", "line": rank + 1}
                    ]
                made.append(new)
    return made


def test_hundreds_of_ranks_each_at_a_place_of_its_own(rows: list[Row]) -> None:
    report = judged(many(rows, 350), within_s=20)
    assert report.verdict == "hung"
    assert any("more groups of suspects" in says for says in report.unexplained)


def test_two_ranks_here_of_a_world_of_thousands(rows: list[Row]) -> None:
    of_kind(rows, "job")[0]["data"].update(
        world_size=3000, absent=list(range(2, 3000)), elsewhere=True
    )
    assert judged(rows, within_s=20).world.size == 3000


def test_a_recursion_as_deep_as_a_case_may_hold(rows: list[Row]) -> None:
    for row in of_kind(rows, "stacks.python"):
        frames = row["data"]["threads"][0]["frames"]
        frames[3:3] = [
            {"name": f"walk_{place % 3}", "file": "/job/train.py", "line": place % 1000}
            for place in range(50_000)
        ]
    assert judged(rows, within_s=20).verdict == "hung"


@pytest.mark.parametrize("number", [0, -1, 2**62, 10**9, float("nan"), float("inf"), "7", None])
@pytest.mark.parametrize("name", ["rank", "pid", "ppid", "world_size", "peer_pid", "look", "fd"])
def test_numbers_that_cannot_be(name: str, number: object, rows: list[Row]) -> None:
    def put(data: Any) -> Any:
        if isinstance(data, dict):
            return {key: number if key == name else put(value) for key, value in data.items()}
        return [put(value) for value in data] if isinstance(data, list) else data

    judged([{**row, "data": put(row["data"])} for row in rows], within_s=10)


@pytest.mark.parametrize("unit", ["is_", "a_", "with a ", "while ", "a.", "x", "(", "[0]"])
@pytest.mark.parametrize("prefix", ["if ", "if is_", "with ", "while "])
def test_source_lines_that_no_rule_can_read(prefix: str, unit: str, rows: list[Row]) -> None:
    for row in of_kind(rows, "source"):
        for site in row["data"]["sites"]:
            site["text"] = prefix + unit * 50_000
            site["blocks"] = [
                {
                    "kind": prefix.split(maxsplit=1)[0],
                    "line": 3,
                    "text": prefix + unit * 50_000,
                    "branch": "body",
                }
            ] * 5
    judged(rows, within_s=10)


def test_an_end_whom_nobody_can_name_is_judged() -> None:
    rows = [
        json.loads(line)
        for line in (
            (CASE.parent / "attach-worker-stuck" / "evidence.jsonl")
            .read_text(encoding="utf-8")
            .splitlines()
        )
    ]
    of_kind(rows, "job")[0]["data"]["others"] = [[[]]]
    for row in rows:
        for thread in row["data"]["threads"] if row["kind"].startswith("stacks") else ():
            thread["name"] = None
    assert judged(rows, within_s=10).causes == ()


def test_everything_hangs_on_itself(rows: list[Row]) -> None:
    for row in of_kind(rows, "sockets"):
        for each in row["data"]["connections"]:
            each.update(peer_pid=each["pid"], remote=each.get("local"), peer="\x1b[31m\n")
    for row in of_kind(rows, "process"):
        row["data"]["ppid"] = row["data"]["pid"]
    for row in of_kind(rows, "locks"):
        row["data"].update(
            held=[
                {**each, "pid": place} for place in range(3000) for each in row["data"]["held"][:1]
            ]
        )
        row["data"].update(
            waiting=[
                {**each, "pid": place, "holder_pid": place + 1}
                for place in range(3000)
                for each in row["data"]["waiting"][:1]
            ]
        )
    judged(rows, within_s=10)


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 2**23,
        "Process 1: x\n" * 2**19,
        "Thread 1 (LWP 5)\n" + ("#0 x" + " at a:1" * 700 + "\n") * 1000,
        "Thread 1 (LWP 5)\n" + ("#0 x at " + ":1" * 2490 + "x\n") * 1000,
        'Thread 1 (idle): "M"\n' + ("    a" + " (a:1" * 990 + "\n") * 1000,
        'Thread 1 (idle): "M"\n' + ("    a (" + ":1" * 2040 + "x\n") * 1000,
        'Thread 0x1 (most recent call first):\n  File "a", line 1 in x\n' * 2**17,
        "\x1b[" * 2**22,
        "=" * 2**23,
        "[rank0] 12:33:44 step 5 loss 0.5\n" * 2**18,
    ],
    ids=[
        "lines",
        "processes",
        "gdb",
        "gdb numbers",
        "py-spy",
        "py-spy numbers",
        "faulthandler",
        "colours",
        "one line",
        "log",
    ],
)
def test_no_text_keeps_the_reader_of_stack_dumps(text: str) -> None:
    began = time.process_time()
    parse_stack_text(text)
    assert time.process_time() - began < 4
