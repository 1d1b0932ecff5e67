"""Short look-ups: bounded in time and size, and told for what they are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainprobe.system.proc import read_stat
from trainprobe.system.run import run


def gone(pid: int) -> bool:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        stats = read_stat(pid)
        if stats is None or stats.dead:
            return True
        time.sleep(0.01)
    return False


def test_output_and_exit_code() -> None:
    ran = run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_s=30)
    assert (ran.stdout, ran.stderr, ran.cut) == (b"out\n", b"err\n", False)
    assert (ran.ended.how, ran.ended.code, ran.ended.by_us) == ("exited", 3, False)


def test_input_environment_and_folder(tmp_path: Path) -> None:
    ran = run(
        ["/bin/sh", "-c", "cat; echo $A; pwd"],
        timeout_s=30,
        input=b"given\n",
        env={"A": "b"},
        cwd=str(tmp_path),
    )
    assert ran.stdout.decode() == f"given\nb\n{tmp_path}\n"
    assert run(["cat"], timeout_s=30).stdout == b"", "without input there is an end to read"


def test_a_missing_program_is_no_exception() -> None:
    ran = run(["/nowhere/program"], timeout_s=30)
    assert ran.ended.how == "not_started"
    assert "/nowhere/program cannot be run: No such file" in ran.ended.reason
    assert run(["true"], timeout_s=30, cwd="/nowhere").ended.how == "not_started"
    assert run([], timeout_s=30).ended.how == "not_started"


def test_a_signal_is_a_signal() -> None:
    ran = run(["sh", "-c", "kill -SEGV $$"], timeout_s=30)
    assert (ran.ended.how, ran.ended.signal, ran.ended.by_us) == (
        "signalled",
        signal.SIGSEGV,
        False,
    )


def test_at_the_deadline_it_goes_with_all_below_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    strays = (
        f"setsid sh -c 'trap \"\" TERM; echo $$ >> {pids}; sleep 90' & sh -c 'echo $$ >> {pids};"
        " sleep 90' & sleep 90"
    )
    ran = run(["sh", "-c", strays], timeout_s=1.5)
    assert ran.ended.how == "timed_out"
    assert ran.ended.by_us
    assert "1.5 s" in ran.ended.reason
    assert all(gone(int(pid)) for pid in pids.read_text().split())
    assert len(pids.read_text().split()) == 2


def test_what_is_left_in_the_group_after_a_good_end_goes_too() -> None:
    ran = run(["sh", "-c", "sleep 90 & echo $!"], timeout_s=30)
    assert ran.ended.code == 0
    assert ran.ended.took_s < 25, "a child that keeps the output open does not hold us up"
    assert gone(int(ran.stdout))


def test_a_flood_is_cut() -> None:
    ran = run(
        [sys.executable, "-c", "import os\nfor _ in range(200): os.write(1, b'x' * 2**20)"],
        timeout_s=60,
        output_cap_bytes=1000,
    )
    assert ran.stdout == b"x" * 1000
    assert ran.cut
    assert ran.ended.code == 0


def test_nothing_is_given_to_a_shell(tmp_path: Path) -> None:
    ran = run(["echo", f"; touch {tmp_path / 'made'}", "$(id)"], timeout_s=30)
    assert ran.stdout.decode() == f"; touch {tmp_path / 'made'} $(id)\n"
    assert not os.listdir(tmp_path)


def test_a_program_that_has_said_all_and_does_not_end_is_not_waited_for() -> None:
    began = time.monotonic()
    ran = run(
        ("sh", "-c", "echo one; echo end; sleep 30"),
        timeout_s=20,
        enough=lambda tail: tail.endswith(b"end\n"),
    )
    assert (ran.stdout, time.monotonic() - began < 8) == (b"one\nend\n", True)
    ran = run(
        ("sh", "-c", "echo end; echo more; sleep 1; echo end"),
        timeout_s=20,
        enough=lambda tail: tail.endswith(b"end\n"),
    )
    assert (ran.ended.how, ran.ended.code, ran.stdout) == ("exited", 0, b"end\nmore\nend\n")


@pytest.mark.parametrize("program", ["/bin/sh", "sh"])
def test_a_program_that_is_started_without_a_fork_is_no_other(program: str) -> None:
    ran = run(
        [program, "-c", "cat; echo err >&2; ps -o pid= -p $$ >/dev/null; exit 3"],
        timeout_s=30,
        input=b"given\n",
        without_fork=True,
    )
    assert (ran.argv[0], ran.stdout, ran.stderr) == (program, b"given\n", b"err\n")
    assert (ran.ended.how, ran.ended.code) == ("exited", 3)


def test_a_program_that_is_missing_is_so_without_a_fork_too() -> None:
    ended = run(["/no/such/program"], timeout_s=30, without_fork=True).ended
    assert (ended.how, "cannot be run" in ended.reason) == ("not_started", True)


def test_a_program_that_was_started_without_a_fork_ends_with_us(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    code = (
        "from trainprobe.system.run import run\n"
        f"run(['sh', '-c', 'echo $$ > {told}.new; mv {told}.new {told}; sleep 600'],"
        " timeout_s=600, without_fork=True)"
    )
    tool = subprocess.Popen([sys.executable, "-c", code])
    until = time.monotonic() + 60
    while not told.exists() and time.monotonic() < until:
        time.sleep(0.02)
    tool.kill()
    tool.wait()
    assert gone(int(told.read_text()))
