"""Processes and file locks, from /proc."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.collect import processes, procfs
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import locks
from trainprobe.collect.collectors.locks import read_locks
from trainprobe.collect.members import Member
from trainprobe.collect.processes import look_at_processes, read_process

Start = Callable[..., "subprocess.Popen[bytes]"]
Until = Callable[[Callable[[], Any]], Any]

SLEEPER = """
import threading, time
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
files = [open("/dev/null") for _ in range(20)]
print("ready", flush=True)
time.sleep(600)
"""
SPINNER = """
print("ready", flush=True)
while True:
    pass
"""
FORKER = """
import os, subprocess, sys, time
forked = os.fork() or time.sleep(600)
started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid
print("ready", flush=True)
print(forked, started, flush=True)
time.sleep(600)
"""
FLOCK = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
if sys.argv[2] == "waiter":
    print("ready", flush=True)
fcntl.flock(file, fcntl.LOCK_EX)
print("ready", flush=True)
time.sleep(600)
"""


def test_a_sleeping_process_shows_where_and_for_how_long(start: Start, until: Until) -> None:
    child = start(SLEEPER)

    def asleep() -> Any:
        seen = read_process(Member(1, child.pid), 1)
        main = seen.data["threads"][0]
        return (
            (seen, main)
            if main["state"] == "S" and (main["asleep_s"] is None or main["asleep_s"] > 0.2)
            else None
        )

    seen, main = until(asleep)
    assert seen.outcome == "ok"
    assert seen.data["state"] == "S"
    assert seen.data["ppid"] == os.getpid()
    assert seen.data["tracer_pid"] == 0
    assert seen.data["cmdline"].endswith("program.py")
    assert seen.data["fds"] >= 23
    assert seen.data["nofile_soft"] > 0
    assert seen.data["rss_bytes"] > 2**20
    assert len(seen.data["threads"]) == 2
    assert main["tid"] == child.pid
    assert main["voluntary"] >= 1
    assert main["syscall"].split()[0].isdigit()
    if main["asleep_s"] is None:
        pytest.skip("this kernel has no /proc/PID/sched")
    # The age grows as the clock does.
    began = time.monotonic()
    later = until(
        lambda: (
            (found := read_process(Member(1, child.pid), 2).data["threads"][0])["asleep_s"]
            > main["asleep_s"] + 0.3
            and found
        )
    )
    assert (
        0.3 < later["asleep_s"] - main["asleep_s"] <= time.monotonic() - began + 2.0
    )  # read at two moments on a busy machine


def test_cpu_time_grows_for_what_computes_and_the_age_stays_zero(
    start: Start, until: Until
) -> None:
    child = start(SPINNER)
    before = read_process(Member(0, child.pid), 1).data["threads"][0]
    after = until(
        lambda: (
            (found := read_process(Member(0, child.pid), 2).data["threads"][0])["cpu_ticks"]
            > before["cpu_ticks"] + 5
            and found
        )
    )
    assert after["state"] == "R"
    assert after["asleep_s"] == 0.0


def test_stopped_zombie_and_vanished(case: Case, start: Start) -> None:
    stopped, zombie, vanished = (
        start(SLEEPER, name="a.py"),
        start("print('ready', flush=True)", name="b.py"),
        start(SLEEPER, name="c.py"),
    )
    os.kill(stopped.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    vanished.kill()
    vanished.wait()
    found = look_at_processes(
        case,
        "c@3",
        [Member(rank, child.pid) for rank, child in enumerate((stopped, zombie, vanished))],
        1,
    )
    assert [evidence.outcome for evidence in found] == ["ok", "ok", "unavailable"]
    assert [evidence.data.get("state") for evidence in found] == ["T", "Z", None]
    assert found[1].data["cmdline"] == "[python]" or found[1].data["cmdline"].startswith("[")
    assert found[2].reason == f"process {vanished.pid} is gone"


def test_a_reused_pid_is_not_taken_for_the_process(start: Start) -> None:
    child = start(SLEEPER)
    now = procfs.stat(child.pid)
    assert now is not None
    assert read_process(Member(0, child.pid, "rank", now.started_ticks), 1).outcome == "ok"
    other = read_process(Member(0, child.pid, "rank", now.started_ticks - 1), 1)
    assert other.outcome == "unavailable"
    assert "belongs to another process" in other.reason


def test_another_users_process_is_seen_in_part(start: Start, as_nobody: Callable[..., Any]) -> None:
    child = start(SLEEPER)
    seen = as_nobody(lambda: read_process(Member(0, child.pid), 1))
    assert seen.outcome == "partial"
    assert "belongs to root" in seen.reason
    assert seen.data["fds"] is None
    assert seen.data["state"] in "SR"


def test_a_fork_is_told_from_a_program_that_was_started(start: Start) -> None:
    child = start(FORKER)
    assert child.stdout is not None
    forked, started = map(int, child.stdout.readline().split())

    found = {pid: read_process(Member(0, pid), 1).data["forked"] for pid in (forked, started)}
    for pid in found:
        os.kill(pid, signal.SIGKILL)

    assert found == {forked: True, started: False}


def test_stat_survives_a_name_with_brackets_and_blanks() -> None:
    line = "12 (a) b (c)) S 7 1 1 0 -1 4194560 1 0 5 0 30 12 0 0 20 0 1 0 98765 1 2 3"
    assert procfs.parse_stat(line) == procfs.Stat("a) b (c)", "S", 7, 42, 98765, minflt=1, majflt=5)
    for nonsense in ("", "12", "12 (x)", "12 (x) S 1 2", ") (" * 9):
        with pytest.raises(ValueError, match="no line of"):
            procfs.parse_stat(nonsense)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("Max open files            1024                 4096                 files", 1024),
        ("Max open files            unlimited   unlimited  files", None),
        ("", None),
    ],
)
def test_the_limit_of_open_files(text: str, limit: int | None) -> None:
    assert processes.nofile_soft(text) == limit


SCHED = """x (1, #threads: 1)
-----
se.exec_start                                :           123.5
se.vruntime                                  :           238.483782
nr_voluntary_switches                        :                  120
nr_involuntary_switches                      :                   13
"""


def test_the_schedulers_numbers() -> None:
    assert processes.parse_sched(SCHED) == {
        "se.exec_start": 123.5,
        "nr_voluntary_switches": 120.0,
        "nr_involuntary_switches": 13.0,
    }
    assert processes.parse_sched("x\nse.exec_start : much\n") == {}
    assert processes.parse_sched("") == {}


def test_what_passed_through_read_and_write() -> None:
    text = (
        "rchar: 6976\nwchar: 12\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes:"
        " 0\ncancelled_write_bytes: 0\n"
    )
    assert processes.parse_io(text) == {
        "rchar": 6976,
        "wchar": 12,
        "read_bytes": 4096,
        "write_bytes": 0,
    }
    assert processes.parse_io("rchar: 6976\n") is None
    assert processes.parse_io("") is None


def test_the_names_of_a_kernel_stack() -> None:
    assert processes.parse_kernel_stack(
        "[<0>] futex_do_wait+0x38/0x70\n[<0>] do_syscall_64+0x71/0x280\nnonsense\n"
    ) == ["futex_do_wait", "do_syscall_64"]
    assert processes.parse_kernel_stack("") == []


def test_io_age_and_owner_of_a_real_process(start: Start) -> None:
    child = start(SPINNER)
    data = read_process(Member(0, child.pid), 1).data
    assert data["uid"] == os.getuid()
    assert data["nspid"][-1] > 0
    assert -1000 <= data["oom_score_adj"] <= 1000
    assert 0 <= data["age_s"] < 60
    assert data["io"]["rchar"] > 0
    assert data["minflt"] > 0
    assert data["threads"][0]["cpu_allowed"] == len(os.sched_getaffinity(child.pid))
    if os.geteuid() == 0 and os.path.exists("/proc/self/stack"):
        idle = start(SLEEPER, name="idle.py")
        assert read_process(Member(0, idle.pid), 1).data["threads"][0]["kernel_stack"]


def test_a_waiter_leads_to_the_holder_and_the_file(
    case: Case, start: Start, until: Until, tmp_path: Any
) -> None:
    path = str(tmp_path / "ds.lock")
    holder = start(FLOCK, path, "holder")
    waiter = start(FLOCK, path, "waiter")
    until(lambda: any(lock["pid"] == waiter.pid for lock in read_locks(set()).data["waiting"]))
    (evidence,) = collect(case, locks.COLLECTOR, JobView([Member(0, waiter.pid)]))
    assert evidence.outcome == "ok"
    (waiting,) = [lock for lock in evidence.data["waiting"] if lock["pid"] == waiter.pid]
    assert waiting["behind_pid"] == holder.pid
    assert waiting["path"] == path
    assert waiting["kind"] == "FLOCK"
    (held,) = [lock for lock in evidence.data["held"] if lock["pid"] == holder.pid]
    assert held["path"] == path
    assert held["mode"] == "WRITE"
    assert held["cmdline"].endswith(f"{path} holder")


def test_lock_lines_of_all_kinds() -> None:
    held, waiting, odd_lines = locks.parse("""\
1: POSIX  ADVISORY  WRITE 8050 fe:00:2146427 0 EOF
1: -> POSIX  ADVISORY  WRITE 8051 fe:00:2146427 0 EOF
2: FLOCK  ADVISORY  WRITE 8007 fe:00:2146427 0 EOF
2: -> FLOCK  ADVISORY  WRITE 8048 fe:00:2146427 0 EOF
2:  -> FLOCK  ADVISORY  WRITE 8049 fe:00:2146427 0 EOF
3: OFDLCK ADVISORY  READ -1 00:2f:9 0 EOF
4: LEASE  ACTIVE    READ 55 <none>:0 0 EOF
nonsense
""")
    assert [(lock["kind"], lock["pid"]) for lock in held] == [
        ("POSIX", 8050),
        ("FLOCK", 8007),
        ("OFDLCK", -1),
    ]
    assert [(lock["pid"], lock["behind_pid"]) for lock in waiting] == [
        (8051, 8050),
        (8048, 8007),
        (8049, 8007),
    ]
    assert odd_lines == 1


def test_a_descriptor_is_placed_by_inode_or_by_its_lock() -> None:
    devices = locks.devices_of_mounts(
        "27 1 254:0 / / rw - ext4 /dev/vda rw\nnonsense\n30 27 0:47 / /tmp rw - tmpfs tmpfs rw"
    )
    assert devices == {"27": "fe:00", "30": "00:2f"}
    assert locks.place_of("pos:\t0\nmnt_id:\t30\nino:\t9\n", devices) == ("00:2f", 9)
    # Before Linux 5.14 there is no inode, but a holder's lock stands there.
    assert locks.place_of(
        "pos:\t0\nmnt_id:\t27\nlock:\t1: FLOCK  ADVISORY  WRITE 12 fe:00:77 0 EOF\n", devices
    ) == ("fe:00", 77)
    assert locks.place_of("pos:\t0\n", devices) is None
