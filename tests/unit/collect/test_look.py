"""The whole look at a running cell, and looks side by side."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainprobe.case import Case
from trainprobe.collect.look import look, look_twice
from trainprobe.collect.members import Member
from trainprobe.collect.seen import Seen, side_by_side, timed

Start = Callable[..., "subprocess.Popen[bytes]"]
Until = Callable[[Callable[[], Any]], Any]

RANK = """
import sys, time
def step(rank):
    if rank == 2:
        time.sleep(600)
    else:
        time.sleep(601)
print("ready", flush=True)
step(int(sys.argv[1]))
"""


def test_one_look_at_four_ranks(case: Case, start: Start, until: Until) -> None:
    children = [start(RANK, str(rank)) for rank in range(4)]
    gone = start(RANK, "4")
    gone.kill()
    gone.wait()
    members = [*(Member(rank, child.pid) for rank, child in enumerate(children)), Member(0, gone.pid, "loader-worker")]
    until(lambda: Path(f"/proc/{children[3].pid}/stat").read_text().split()[2] == "S")
    began = time.monotonic()
    found = look(case, "user_script@4", members, 1, deadline_s=20)
    took_s = time.monotonic() - began
    kinds = [evidence.kind for evidence in found]
    assert kinds == ["process"] * 5 + ["stacks.python"] * 5 + ["locks"] + ["source"] * 4
    by_rank = {evidence.subject.rank: evidence for evidence in found if evidence.kind == "stacks.python" and evidence.subject.role == "rank"}
    assert [by_rank[rank].data["threads"][0]["frames"][0]["line"] for rank in range(4)] == [7, 7, 5, 7]
    assert all(evidence.subject.started_ticks is not None for evidence in by_rank.values())
    refused = [evidence for evidence in found if evidence.outcome != "ok"]
    assert [(evidence.kind, evidence.subject.role, evidence.subject.kind) for evidence in refused] == [
        ("process", "loader-worker", "process"),
        ("stacks.python", "loader-worker", "process"),
    ]
    branch = {evidence.subject.rank: evidence.data["sites"][0]["blocks"][-1]["branch"] for evidence in found if evidence.kind == "source"}
    assert branch == {0: "orelse", 1: "orelse", 2: "body", 3: "orelse"}
    # 0.06 s on two idle cores; the bound is for a machine that is busy with something else.
    assert took_s < 3
    lines = Path(case.folder, "evidence.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == kinds


def test_two_looks_stand_apart_and_read_the_source_once(case: Case, start: Start) -> None:
    child = start(RANK, "2")
    found = look_twice(case, "c@1", [Member(2, child.pid)], spacing_s=0.3, deadline_s=20)
    first, second = [evidence for evidence in found if evidence.kind == "process"]
    assert (first.data["look"], second.data["look"]) == (1, 2)
    assert second.began - first.began >= 0.29
    sources = [evidence for evidence in found if evidence.kind == "source"]
    lines = [site["line"] for evidence in sources for site in evidence.data["sites"]]
    assert len(lines) == len(set(lines))


def test_a_look_at_nobody(case: Case) -> None:
    assert [evidence.kind for evidence in look(case, "c@0", [], 1)] == ["locks"]


def test_a_look_that_hangs_is_left_behind_and_the_others_are_kept() -> None:
    released = threading.Event()

    def hangs() -> Seen:
        released.wait(60)
        return Seen({"late": True})

    began = time.monotonic()
    found = side_by_side([lambda: Seen({"a": 1}), hangs, lambda: Seen({"b": 2})], 0.5, at_once=2)
    assert time.monotonic() - began < 5
    released.set()
    assert [seen.outcome for seen in found] == ["ok", "timed_out", "ok"]
    assert [dict(seen.data) for seen in found] == [{"a": 1}, {}, {"b": 2}]
    assert "0.5 s" in found[1].reason


def test_the_order_is_kept_with_fewer_threads_than_looks() -> None:
    def number(value: int) -> Callable[[], Seen]:
        return lambda: Seen({"value": value})

    assert [seen.data["value"] for seen in side_by_side([number(value) for value in range(50)], 5, at_once=3)] == list(range(50))
    assert side_by_side([], 1) == []


def test_a_fault_of_a_look_is_evidence() -> None:
    seen = timed(lambda: Seen(1 // 0))  # type: ignore[arg-type]
    assert seen.outcome == "crashed"
    assert "ZeroDivisionError" in seen.reason
    assert seen.began > 0
