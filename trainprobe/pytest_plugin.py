"""`pytest --trainprobe`: a distributed test that hangs ends with a report instead of a timeout.

A test that takes long is looked at from a thread: the job that it has started is found among the
children of pytest, and looked at as `trainprobe attach` does. If two looks find it hung, its
processes are ended, and the test fails with the report.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from types import FrameType

import pytest

AFTER_S = 20.0
AGAIN_S = 2.0
# A test that a look finds healthy is left alone for as long as it has taken, at most for so long:
# on a crowded machine a look may have had no time to be sure.
LONGER, LONGEST_S = 2.0, 20.0
GRACE_S = 3.0
RETURNS_S = 5.0  # so long a test may take to see that its processes are gone


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --trainprobe and --trainprobe-after."""
    group = parser.getgroup("trainprobe")
    group.addoption(
        "--trainprobe",
        action="store_true",
        help="Look at the jobs of tests that take long; end those that hang, with a report.",
    )
    group.addoption(
        "--trainprobe-after",
        type=float,
        default=AFTER_S,
        metavar="S",
        help="How long a test may take before it is looked at. [default: %(default)s]",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Watch the test while it runs."""
    if not item.config.getoption("--trainprobe"):
        return (yield)
    watch = _Watch(float(item.config.getoption("--trainprobe-after")))
    try:
        with watch:
            return (yield)
    except BaseException:
        if watch.report:
            item.add_report_section("call", "trainprobe", watch.report)
        raise
    finally:
        if watch.report:
            # also a test that takes the end of its job for success has hung
            _told.append(f"{item.nodeid}\n{watch.report}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test whose job hung has failed, whatever it made of that itself."""
    report = yield
    mine = [one for one in _told if one.startswith(f"{item.nodeid}\n")]
    if call.when == "call" and mine and report.passed:
        report.outcome = "failed"
        report.longrepr = f"The job of this test hung.\n\n{mine[-1]}"
    return report


_told: list[str] = []


class _Watch:
    """A thread beside one test. `report` is not empty where its job hung."""

    def __init__(self, after_s: float) -> None:
        self.report = ""
        self._after_s = after_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="trainprobe-pytest", daemon=True)
        self._before: object = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGUSR2, self._fail)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._before is not None:
            signal.signal(signal.SIGUSR2, self._before)  # type: ignore[arg-type]

    def _watch(self) -> None:
        began, hung, wait_s = time.monotonic(), 0, self._after_s
        while not self._over.wait(wait_s):
            text = self._look()
            hung = hung + 1 if text else 0
            if hung > 1:
                self.report = text
                self._end_job()
                return
            took_s = time.monotonic() - began
            wait_s = AGAIN_S if hung else max(AGAIN_S, min(LONGEST_S, (LONGER - 1) * took_s))

    def _look(self) -> str:
        """The report, where the job of the test is hung; else empty."""
        from trainprobe.supervise.looks import look

        for pid in _jobs_below_us():
            folder = tempfile.mkdtemp(prefix="trainprobe-pytest-")
            found = look(pid, os.path.join(folder, "case"), self._over.is_set)
            if found.verdict == "hung":
                return found.text
            shutil.rmtree(folder, ignore_errors=True)
        return ""

    def _end_job(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in _all_below_us():
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            if self._over.wait(GRACE_S):
                return
        if not self._over.wait(RETURNS_S) and self._before is not None:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR2)

    def _fail(self, _number: int, _frame: FrameType | None) -> None:
        if not self._over.is_set():
            pytest.fail("The job of this test hung, and the test waits on.", pytrace=True)


def _jobs_below_us() -> list[int]:
    from trainprobe.errors import UsageError
    from trainprobe.targets.jobs import find_jobs

    below = _all_below_us()
    with contextlib.suppress(UsageError):  # not found in time, on a crowded machine: next time
        return [
            job.pid
            for job in find_jobs()
            if job.pid in below or any(rank.pid in below for rank in job.ranks)
        ]
    return []


def _all_below_us() -> set[int]:
    """Our descendants, without those that look at the job."""
    from trainprobe.targets.process_table import snapshot
    from trainprobe.targets.programs import is_ours

    table = snapshot()
    us = table.by_pid.get(os.getpid())
    if us is None:
        return set()
    return {one.pid for one in table.descendants(us) if not is_ours(one.argv) and not one.ended}
