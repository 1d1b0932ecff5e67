"""/proc read without raising."""

from __future__ import annotations

import os
import subprocess
import sys

from trainprobe.system.proc import kept_status, read_cmdline, read_file, read_stat


def test_stat_of_a_process_with_an_awkward_name() -> None:
    awkward = (
        "import ctypes,sys; ctypes.CDLL(None).prctl(15, b'a) S 1 (b', 0, 0, 0); print(flush=True);"
        " sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", awkward],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"RANK": "12"},
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        stats = read_stat(child.pid)
        cmdline, rank, readable = read_cmdline(child.pid)
        assert stats is not None
        assert (stats.ppid, stats.dead, stats.threads, stats.session) == (
            os.getpid(),
            False,
            1,
            os.getsid(0),
        )
        assert cmdline.startswith(f"{sys.executable} -c import")
        assert (rank, readable) == (12, True)
        child.communicate()


def test_a_zombie_tells_its_status_and_is_dead() -> None:
    child = subprocess.Popen(["sh", "-c", "exit 9"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    stats = read_stat(child.pid)
    assert stats is not None
    assert stats.dead
    assert stats.status in (9 << 8, None)
    assert read_cmdline(child.pid)[0] == "[sh]"
    child.wait()
    assert read_stat(child.pid) is None


def test_a_new_kernel_remembers_who_was_reaped() -> None:
    child = subprocess.Popen(["sh", "-c", "kill -SEGV $$"])
    pidfd = os.pidfd_open(child.pid)
    child.wait()
    status = kept_status(pidfd)
    os.close(pidfd)
    assert status is None or status & 0x7F == 11


def test_what_is_not_there_is_empty() -> None:
    assert read_stat(2**22 + 1) is None
    assert read_file("/proc/nothing", 10) == b""
    assert read_file("/proc", 10) == b""
    assert read_cmdline(2**22 + 1) == ("[]", None, False)
