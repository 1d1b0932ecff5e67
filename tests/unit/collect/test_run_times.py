"""When a main thread ran between two long waits."""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import pairwise

from trainprobe.collect.procfs import parse_schedstat
from trainprobe.collect.run_times import RunTimes

NAPS = """
import time
print("ready", flush=True)
while True:
    time.sleep(0.4)
    until = time.process_time() + 0.01
    while time.process_time() < until:
        pass
"""
WAITS = "import time; print('ready', flush=True); time.sleep(60)"


def test_short_work_between_naps_is_seen_and_a_wait_has_none() -> None:
    programs = [
        subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
        for text in (NAPS, WAITS)
    ]
    try:
        for program in programs:
            assert program.stdout is not None
            program.stdout.readline()
        began = time.time()
        with RunTimes([program.pid for program in programs]) as seen:
            deadline = time.monotonic() + 20
            while len(seen.moments(programs[0].pid)) < 4 and time.monotonic() < deadline:
                time.sleep(0.05)
    finally:
        for program in programs:
            program.kill()
            program.communicate()
    moments = seen.moments(programs[0].pid)
    assert len(moments) >= 4
    assert all(after - before > 0.3 for before, after in pairwise([began - 1, *moments]))
    assert seen.moments(programs[1].pid) == []
    assert seen.busy(programs[1].pid) == []


def test_a_thread_that_computes_all_the_time_is_busy_all_the_time() -> None:
    program = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with RunTimes([program.pid]) as seen:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and _longest(seen.busy(program.pid)) < 0.2:
                time.sleep(0.05)
    finally:
        program.kill()
        program.wait()
    assert _longest(seen.busy(program.pid)) >= 0.2
    assert seen.moments(program.pid) == []


def _longest(spans: list[tuple[float, float]]) -> float:
    return max((end - start for start, end in spans), default=0.0)


def test_a_process_that_is_gone_has_no_moments() -> None:
    with RunTimes([2**22 + 1]) as seen:
        time.sleep(0.1)
    assert seen.moments(2**22 + 1) == []


def test_only_the_kernel_s_three_numbers_are_read() -> None:
    assert parse_schedstat("1500000 20 7\n") == (1_500_000, 20)
    assert parse_schedstat("") == (None, None)
    assert parse_schedstat("nonsense") == (None, None)
