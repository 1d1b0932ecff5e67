"""Samples of main threads by `py-spy record`."""

from __future__ import annotations

import json
from pathlib import Path

from trainprobe.case import Case
from trainprobe.collect.members import Member
from trainprobe.collect.samples import look_at_samples, parse


def event(at: int, phase: str, name: str, line: int = 0, thread: int = 140) -> dict[str, object]:
    return {
        "args": {"filename": "/job/train.py" if line else "", "line": line},
        "cat": "py-spy",
        "name": name,
        "ph": phase,
        "pid": 7,
        "tid": thread,
        "ts": at,
    }


MAIN, OTHER = "thread (7): MainThread", "thread (9): telemetry"
TRACE = [
    event(100_000, "B", OTHER, thread=141),
    event(100_000, "B", "beat", 3, thread=141),
    event(100_000, "B", MAIN),
    event(100_000, "B", "main", 20),
    event(100_000, "B", "load", 8),
    event(300_000, "E", "load", 8),
    event(300_000, "E", "main", 20),
    event(300_000, "B", "main", 21),
    event(500_000, "E", "main", 21),
    event(500_000, "B", "main", 20),
    event(500_000, "B", "load", 8),
    event(600_000, "E", "load", 8),
    event(600_000, "E", "main", 20),
    event(600_000, "E", MAIN),
]


def test_the_main_thread_s_stacks_in_their_order() -> None:
    found = parse(json.dumps(TRACE).encode(), 7)
    assert found is not None
    stacks, spells = found
    loads = (("main", "/job/train.py", 20), ("load", "/job/train.py", 8))
    assert stacks == [loads, (("main", "/job/train.py", 21),)]
    assert spells == [(0.1, 0.3, 0), (0.3, 0.5, 1), (0.5, 0.6, 0)]


def test_what_is_no_trace_is_refused() -> None:
    assert parse(b"nonsense", 7) is None
    assert parse(b'[{"ph": "B"}]', 7) is None
    assert parse(b"[]", 7) == ([], [])


def test_a_process_that_is_gone_is_evidence(tmp_path: Path) -> None:
    case = Case.create(str(tmp_path / "case"), "attach", ())
    (found,) = look_at_samples(case, "job", [Member(0, 2**22 - 3, "rank", 5)], 1.0)
    assert (found.kind, found.outcome) == ("stacks.samples", "unavailable")
    assert found.reason
