"""Clocks of CPUs that differ: an age is told in the clock of the CPU that the thread last ran
on.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from trainprobe.collect.members import Member
from trainprobe.collect.processes import read_process
from trainprobe.collect.scheduler_clocks import SchedulerClocks

TWO = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU has one clock")


def behind(seconds: dict[int, float]) -> SchedulerClocks:
    """Clocks that are behind by so many seconds, by CPU: what /proc would say of us, wherever we
    run.
    """

    def last_ran() -> float:
        (cpu,) = os.sched_getaffinity(0) if len(os.sched_getaffinity(0)) == 1 else (min(seconds),)
        return (time.monotonic() - seconds[cpu]) * 1000

    return SchedulerClocks(last_ran)


@TWO
def test_each_cpu_has_its_own_clock() -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    clocks = behind({first: 100.0, second: 40.0})
    moment = time.monotonic() - 5

    assert clocks.ago_s((moment - 100.0) * 1000, first) == pytest.approx(5, abs=0.5)
    assert clocks.ago_s((moment - 40.0) * 1000, second) == pytest.approx(5, abs=0.5)


@TWO
def test_of_a_cpu_that_may_not_be_visited_the_shortest_age_counts() -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    clocks = behind({first: 100.0, second: 40.0})
    for cpu in (first, second):
        clocks.ago_s(0.0, cpu)

    told = clocks.ago_s((time.monotonic() - 100.0 - 5) * 1000, 10**6)
    assert told == pytest.approx(5, abs=0.5)


def test_the_thread_may_run_where_it_could_before() -> None:
    before = os.sched_getaffinity(0)
    behind(dict.fromkeys(before, 1.0)).ago_s(0.0, min(before))
    assert os.sched_getaffinity(0) == before


def test_without_the_file_nothing_is_known() -> None:
    assert SchedulerClocks(lambda: None).ago_s(1.0, 0) is None


@pytest.mark.parametrize("cpu", sorted(os.sched_getaffinity(0))[:4])
def test_a_sleeper_is_as_old_as_its_sleep_whichever_cpu_it_fell_asleep_on(cpu: int) -> None:
    code = (
        f"import os, time; os.sched_setaffinity(0, {{{cpu}}}); print('sleeps', flush=True);"
        " time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "sleeps\n"
            began = time.monotonic()
            time.sleep(0.5)
            (main,) = read_process(Member(None, child.pid), 1).data["threads"]
            most = time.monotonic() - began + 0.2
        finally:
            child.kill()
    if main["asleep_s"] is None:
        pytest.skip("this kernel has no /proc/PID/sched")
    assert 0.3 <= main["asleep_s"] <= most
