"""Looks side by side: deadlines, order, and faults that become evidence."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from trainprobe.collect.look_results import LookResult, side_by_side, timed


def test_a_look_that_hangs_is_left_behind_and_the_others_are_kept() -> None:
    released = threading.Event()

    def hangs() -> LookResult:
        released.wait(60)
        return LookResult({"late": True})

    began = time.monotonic()
    found = side_by_side(
        [lambda: LookResult({"a": 1}), hangs, lambda: LookResult({"b": 2})], 0.5, at_once=2
    )
    assert time.monotonic() - began < 5
    released.set()
    assert [seen.outcome for seen in found] == ["ok", "timed_out", "ok"]
    assert [dict(seen.data) for seen in found] == [{"a": 1}, {}, {"b": 2}]
    assert "0.5 s" in found[1].reason


def test_the_order_is_kept_with_fewer_threads_than_looks() -> None:
    def number(value: int) -> Callable[[], LookResult]:
        return lambda: LookResult({"value": value})

    assert [
        seen.data["value"]
        for seen in side_by_side([number(value) for value in range(50)], 5, at_once=3)
    ] == list(range(50))
    assert side_by_side([], 1) == []


def test_a_fault_of_a_look_is_evidence() -> None:
    seen = timed(lambda: LookResult(1 // 0))  # type: ignore[arg-type]
    assert seen.outcome == "crashed"
    assert "ZeroDivisionError" in seen.reason
    assert seen.began > 0
