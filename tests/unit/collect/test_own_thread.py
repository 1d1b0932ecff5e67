"""Starting a thread in a live process: it runs, it leaves nothing, and nothing that anybody does
meanwhile spoils the process.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trainprobe.collect import elf_memory, own_thread
from trainprobe.system import borrowed_thread

pytestmark = pytest.mark.skipif(
    bool(borrowed_thread.unsupported()), reason=borrowed_thread.unsupported() or "supported"
)

# Each waits in its own way and says whether what it waited for came as it should.
WAITS = {
    "untimed lock": "e = threading.Event(); threading.Timer(1.2, e.set).start(); print(e.wait())",
    "timed lock": "print(not threading.Event().wait(1.2))",
    "sleep": "time.sleep(1.2); print(True)",
    "pipe": (
        "r, w = os.pipe(); threading.Timer(1.2, os.write, (w, b'x')).start(); print(os.read(r, 1)"
        " == b'x')"
    ),
    "poll": "r, w = os.pipe(); print(select.select([r], [], [], 1.2) == ([], [], []))",
    "socket": (
        "a, b = socket.socketpair(); threading.Timer(1.2, b.send, (b'x',)).start(); print(a.recv(1)"
        " == b'x')"
    ),
    "child": "print(subprocess.run(['sleep', '1.2']).returncode == 0)",
}
TARGET = """
import hashlib, math, os, select, socket, subprocess, sys, threading, time
done = []
def compute():
    digest, x = hashlib.sha256(), 0.5
    for turn in range(int(sys.argv[1])):
        for _ in range(2000):
            x = math.sin(x) * 1.7 + 0.3
        digest.update(repr(x).encode())
    done.append(digest.hexdigest())
worker = threading.Thread(target=compute); worker.start()
print("ready", flush=True)
began = time.monotonic()
WAIT
took = time.monotonic() - began
worker.join()
dummies = [one for one in threading.enumerate() if "Dummy" in one.name]
print(1.1 < took, done[0], len(dummies), sorted(name for name in vars() if name.startswith("left")), flush=True)
"""
Target = Callable[[str, int], "subprocess.Popen[str]"]


@pytest.fixture
def target() -> Iterator[Target]:
    started: list[subprocess.Popen[str]] = []

    def start(wait: str, turns: int = 300) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", TARGET.replace("WAIT", wait), str(turns)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def threads(pid: int) -> list[str]:
    return [
        Path(f"/proc/{pid}/task/{tid}/comm").read_text().strip()
        for tid in os.listdir(f"/proc/{pid}/task")
    ]


def undisturbed(turns: int = 300) -> str:
    """What the target computes when nobody looks."""
    done = subprocess.run(
        [sys.executable, "-c", TARGET.replace("WAIT", "pass"), str(turns)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()[2]


@pytest.fixture(scope="module")
def digest() -> str:
    return undisturbed()


@pytest.mark.parametrize("wait", WAITS)
def test_it_runs_there_and_the_process_goes_on_as_if_nothing_had_been(
    wait: str, target: Target, digest: str, tmp_path: Path
) -> None:
    process = target(WAITS[wait], 300)
    ran = 0
    for turn in range(20):
        text = (
            f'try:\n exec("import os\\nleft = os.open({str(tmp_path / str(turn))!r},'
            ' os.O_CREAT)\\nos.close(left)", {})\nexcept BaseException: pass\n'
        )
        answer = own_thread.start(process.pid, text.encode())
        if not answer.refused:
            ran += 1
        elif (
            "still waits" not in answer.refused
        ):  # of the one before, that it has not got the interpreter yet
            process.wait(timeout=60)  # on a busy machine it comes to its end before the last turn
            break
        time.sleep(0.02)
    said, _ = process.communicate(timeout=60)
    assert said.split("\n")[-2] == f"True {digest} 0 []", said
    assert "True" in said.split("\n")[-3], said
    assert process.returncode == 0
    assert ran >= 1
    assert len(list(tmp_path.iterdir())) in (
        ran - 1,
        ran,
    )  # the last may have come too late to get a turn


KILLED = """
import sys
from trainprobe.collect import own_thread
while True:
    own_thread.start(int(sys.argv[1]), b"import os; os.getpid()\\n")
"""


def test_whoever_looks_may_be_killed_at_any_moment(target: Target, digest: str) -> None:
    process = target("time.sleep(4)", 300)
    for seed in range(12):
        looker = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(process.pid)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        time.sleep(0.12 + random.Random(seed).random() * 0.1)
        looker.kill()
        looker.wait()
        state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state in "SR"
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said.split("\n")[-2]) == (0, f"True {digest} 0 []"), said


def test_a_stopped_process_is_left_alone(target: Target) -> None:
    process = target("time.sleep(60)", 0)
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.05)
    answer = own_thread.start(process.pid, b"pass\n", deadline_s=0.1)
    assert "borrow" in answer.refused
    process.send_signal(signal.SIGCONT)


def test_while_the_interpreter_is_held_one_thread_waits_and_a_second_is_refused(
    target: Target, tmp_path: Path
) -> None:
    # PyDLL keeps the interpreter lock during the call.
    process = target("import ctypes; ctypes.PyDLL(None).sleep(2)", 0)
    mark = tmp_path / "ran"
    text = f"try:\n exec(\"open({str(mark)!r}, 'x').close()\", {{}})\nexcept BaseException: pass\n".encode()
    assert own_thread.start(process.pid, text).refused == ""
    time.sleep(0.1)
    assert "trainprobe" in threads(process.pid)
    assert "still waits" in own_thread.start(process.pid, text).refused
    assert not mark.exists()
    ends = time.monotonic() + 5
    while not mark.exists() and time.monotonic() < ends:
        time.sleep(0.05)
    assert mark.exists()
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 0, said


def test_a_file_that_is_no_longer_mapped_is_passed_over(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = target("time.sleep(60)", 0)
    gone = elf_memory.Mapping(0x10000, 0x11000, "r--p", 0, "/usr/lib/libc-of-another-day.so")
    real = elf_memory.mappings
    monkeypatch.setattr(elf_memory, "mappings", lambda pid: [gone, *real(pid)])
    mark = tmp_path / "ran"
    text = f"open({str(mark)!r}, 'x').close()\n".encode()
    assert own_thread.start(process.pid, text).refused == ""
    ends = time.monotonic() + 10
    while not mark.exists() and time.monotonic() < ends:
        time.sleep(0.02)
    assert mark.exists()


def test_a_process_that_is_no_python_is_refused() -> None:
    process = subprocess.Popen(["sleep", "30"])
    try:
        time.sleep(0.1)
        assert "exports no" in own_thread.start(process.pid, b"pass\n").refused
    finally:
        process.kill()
        process.wait()


def test_a_process_that_is_gone_is_refused() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    assert "hidden" in own_thread.start(process.pid, b"pass\n").refused
