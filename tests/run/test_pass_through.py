"""A command under `trainprobe run` behaves as it does alone: output, signals, terminal, ending."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.conftest import ROOT, TOKEN, processes_with, python_path

UNDER = [sys.executable, "-m", "trainprobe", "run", "--"]
COUNTS = """
import os, signal, sys, time
got = []
numbers = [getattr(signal, name) for name in sys.argv[1:]]
for number in numbers:
    signal.signal(number, lambda which, _: got.append(which))
print("ready", flush=True)
ends = time.monotonic() + 120
while not got and time.monotonic() < ends:
    time.sleep(0.01)
time.sleep(0.4)
print(sorted(signal.Signals(one).name for one in got), flush=True)
sys.exit(len(got))
"""
ENDINGS = {
    "good": "raise SystemExit(0)",
    "code": "raise SystemExit(3)",
    "largest code": "raise SystemExit(255)",
    "exception": "raise ValueError('no such batch')",
    "terminated": "import os; os.kill(os.getpid(), 15)",
    "killed": "import os; os.kill(os.getpid(), 9)",
    "aborted": "import os, signal; signal.signal(6, signal.SIG_DFL); os.kill(os.getpid(), 6)",
    "interrupted": "import os, signal; signal.signal(2, signal.SIG_DFL); os.kill(os.getpid(), 2)",
    "fault": "import os; os.kill(os.getpid(), 11)",
}

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path, token: str) -> Iterator[Start]:
    """Start a command, alone or under the tool, in a session of its own."""
    started: list[subprocess.Popen[bytes]] = []

    def go(*argv: str, under: bool = True, **more: object) -> subprocess.Popen[bytes]:
        words = [*UNDER, *argv] if under else list(argv)
        settings: dict[str, object] = {
            "cwd": tmp_path,
            "env": {**os.environ, **python_path(), TOKEN: token},
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "start_new_session": True,
        }
        child: subprocess.Popen[bytes] = subprocess.Popen(words, **{**settings, **more})  # type: ignore[call-overload]
        started.append(child)
        return child

    yield go
    for child in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                stream.close()


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_ends_as_the_command_does(start: Start, ending: str) -> None:
    argv = [sys.executable, "-c", ENDINGS[ending]]
    alone, under = start(*argv, under=False), start(*argv)
    wanted, found = alone.communicate(timeout=120), under.communicate(timeout=60)
    # faulthandler, which the tool switches on, adds its lines to those of a fault
    if ending == "fault":
        assert found[1].startswith(b"Fatal Python error")
        found = (found[0], b"")
    assert (found, under.returncode) == (wanted, alone.returncode)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
@pytest.mark.parametrize("to", ["process", "group"])
def test_a_signal_arrives_once(start: Start, name: str, to: str) -> None:
    """Whether it was sent to the tool alone or to its whole group."""
    child = start(sys.executable, "-c", COUNTS, name)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    (os.killpg if to == "group" else os.kill)(child.pid, getattr(signal, name))
    assert child.stdout.read() == f"['{name}']\n".encode()
    assert child.wait(timeout=120) == 1


def test_a_signal_that_was_ignored_before_stays_ignored(start: Start) -> None:
    script = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, flush=True)"
    wait = "import time; time.sleep(0.5); print('here')"
    child = start(
        sys.executable,
        "-c",
        f"{script}\n{wait}",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"True\n"
    os.kill(child.pid, signal.SIGHUP)
    assert child.stdout.read() == b"here\n"
    assert child.wait(timeout=120) == 0


@pytest.mark.parametrize("to", ["process", "group"])
def test_a_command_may_listen_to_what_was_ignored_before(start: Start, to: str) -> None:
    """As a shell ignores SIGINT and SIGQUIT for what it puts in the background."""
    child = start(
        *(sys.executable, "-c", COUNTS, "SIGQUIT"),
        preexec_fn=lambda: signal.signal(signal.SIGQUIT, signal.SIG_IGN),
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    (os.killpg if to == "group" else os.kill)(child.pid, signal.SIGQUIT)
    assert child.stdout.read() == b"['SIGQUIT']\n"


def test_nothing_is_lost_of_a_gigabyte(start: Start) -> None:
    child = start("head", "-c", str(2**30), "/dev/zero")
    assert child.stdout is not None
    count = 0
    while part := child.stdout.read(2**20):
        count += len(part)
    assert (count, child.wait(timeout=120)) == (2**30, 0)


def test_input_passes_through(start: Start) -> None:
    data = os.urandom(3 * 2**20)
    child = start("sha256sum")
    out, _ = child.communicate(data, timeout=60)
    assert out.split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_the_reader_of_its_output_goes_away(start: Start) -> None:
    child = start("yes")
    assert child.stdout is not None
    child.stdout.read(10)
    child.stdout.close()
    assert child.wait(timeout=120) == -signal.SIGPIPE


def test_who_reads_its_output_sees_that_the_command_has_closed_it(start: Start) -> None:
    child = start(sys.executable, "-c", "import os, time; os.close(1); time.sleep(20)")
    assert child.stdout is not None
    assert child.stdout.read() == b""
    assert child.poll() is None


def test_who_feeds_it_sees_that_the_command_reads_no_more(start: Start) -> None:
    child = start(
        sys.executable, "-c", "import os, time; os.close(0); print(1, flush=True); time.sleep(20)"
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdout.readline()
    with pytest.raises(BrokenPipeError):
        _write(child.stdin, 100 * 2**16)


def _write(stream: IO[bytes], size: int) -> None:
    for _ in range(size // 2**16):
        stream.write(b"x" * 2**16)
        stream.flush()


def test_other_descriptors_are_handed_on(start: Start, tmp_path: Path) -> None:
    with (tmp_path / "third").open("wb") as file:
        script = f"import os; os.write({file.fileno()}, b'three')"
        child = start(sys.executable, "-c", script, pass_fds=[file.fileno()])
        assert child.wait(timeout=120) == 0
    assert (tmp_path / "third").read_text() == "three"


def test_a_closed_stream_stays_closed(start: Start) -> None:
    script = "import os, sys\ntry: os.fstat(0)\nexcept OSError: sys.exit(9)"
    child = start(sys.executable, "-c", script, stdin=None, preexec_fn=lambda: os.close(0))
    assert child.wait(timeout=120) == 9


@pytest.mark.parametrize(("command", "code"), [("no-such-command", 127), ("/etc/hostname", 126)])
def test_a_command_that_cannot_run_has_the_code_of_a_shell(
    start: Start, command: str, code: int
) -> None:
    child = start(command)
    _, said = child.communicate(timeout=120)
    assert child.returncode == code
    assert said.count(b"\n") == 1


def test_the_job_goes_on_when_the_tool_is_killed(start: Start, tmp_path: Path, token: str) -> None:
    script = (
        "import time, sys\nfor step in range(100):\n    open('step', 'w').write(str(step))\n"
        "    time.sleep(0.02)\nopen('done', 'w').close()"
    )
    child = start(sys.executable, "-c", script)
    ends = time.monotonic() + 120
    while not (tmp_path / "step").exists() and time.monotonic() < ends:
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    while not (tmp_path / "done").exists() and time.monotonic() < ends:
        time.sleep(0.02)
    assert (tmp_path / "done").exists()
    left = {}
    while time.monotonic() < ends and (left := processes_with(token)):
        time.sleep(0.05)
    assert left == {}, "neither the job nor the tool leaves a process"


def test_a_fault_of_the_tool_leaves_the_job_alone(start: Start, tmp_path: Path) -> None:
    breaks = tmp_path / "breaks"
    breaks.mkdir()
    (breaks / "sitecustomize.py").write_text(
        "from trainprobe.supervise import supervision\n"
        "def fail(*_):\n    raise ValueError('broken')\n"
        "supervision.Supervision._each_half_second = fail\n"
    )
    path = os.pathsep.join([str(breaks), str(ROOT)])
    child = start(
        *(sys.executable, "-S", "-c", f"import time; time.sleep(1.5)\n{COUNTS}", "SIGTERM"),
        env={**os.environ, "PYTHONPATH": path},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    os.kill(child.pid, signal.SIGTERM)
    out, said = child.communicate(timeout=120)
    assert (out, child.returncode) == (b"['SIGTERM']\n", 1)
    assert b"A fault of trainprobe itself (ValueError: broken)" in said


def test_a_run_without_trouble_leaves_nothing(start: Start, tmp_path: Path) -> None:
    child = start("true")
    assert child.communicate(timeout=120) == (b"", b"")
    assert list(tmp_path.iterdir()) == []


class Terminal:
    """A command on a pseudo-terminal, in the foreground of a session of its own."""

    def __init__(self, *argv: str, folder: Path, token: str) -> None:
        self.pid, self._keyboard = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            env = {**os.environ, **python_path(), TOKEN: token}
            os.execvpe(argv[0], argv, env)
        self.text = ""

    def until(self, wanted: str, timeout_s: float = 120.0) -> None:
        ends = time.monotonic() + timeout_s
        while wanted not in self.text:
            left_s = ends - time.monotonic()
            assert left_s > 0, f"no {wanted!r} in {self.text!r}"
            if select.select([self._keyboard], [], [], left_s)[0]:
                with contextlib.suppress(OSError):
                    self.text += os.read(self._keyboard, 4096).decode()

    def press(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    def wait(self, flags: int = 0) -> int:
        return os.waitpid(self.pid, flags)[1]

    def close(self) -> None:
        for kill in (os.kill, os.killpg):
            with contextlib.suppress(ProcessLookupError):
                kill(self.pid, signal.SIGKILL)
        os.close(self._keyboard)


@pytest.fixture
def on_terminal(tmp_path: Path, token: str) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def go(*argv: str) -> Terminal:
        opened.append(Terminal(*UNDER, *argv, folder=tmp_path, token=token))
        return opened[-1]

    yield go
    for terminal in opened:
        terminal.close()


def test_a_terminal_stays_a_terminal(on_terminal: Callable[..., Terminal]) -> None:
    script = "import os, sys; print([os.isatty(fd) for fd in range(3)]); print(input())"
    terminal = on_terminal(sys.executable, "-c", script)
    terminal.until("[True, True, True]\r\n")
    terminal.press(b"typed\n")
    terminal.until("typed\r\ntyped")
    assert terminal.wait() == 0


def test_ctrl_c_arrives_once(on_terminal: Callable[..., Terminal]) -> None:
    terminal = on_terminal(sys.executable, "-c", COUNTS, "SIGINT")
    terminal.until("ready")
    terminal.press(b"\x03")
    terminal.until("['SIGINT']")
    assert os.waitstatus_to_exitcode(terminal.wait()) == 1


def test_ctrl_z_stops_all_of_it_and_it_goes_on(on_terminal: Callable[..., Terminal]) -> None:
    script = "import time; print('ready', flush=True); time.sleep(1); print('went on', flush=True)"
    terminal = on_terminal(sys.executable, "-c", script)
    terminal.until("ready")
    terminal.press(b"\x1a")
    assert os.WIFSTOPPED(terminal.wait(os.WUNTRACED))
    os.killpg(terminal.pid, signal.SIGCONT)
    terminal.until("went on")
    assert terminal.wait() == 0


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="a pid namespace needs root")
def test_as_process_1_it_waits_for_orphans_and_passes_signals_on(
    tmp_path: Path, token: str
) -> None:
    orphans = "import os, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.fork() or os._exit(0); os._exit(0)\n"
    script = (
        f"{orphans}import glob, signal, sys\n"
        "signal.signal(15, lambda *_: sys.exit(7))\n"
        "for child in range(3): os.wait()\n"
        "time.sleep(0.5)\n"
        "states = [open(one).read().rpartition(')')[2].split()[0] for one in glob.glob('/proc/[0-9]*/stat')]\n"
        "print(states.count('Z'), flush=True)\ntime.sleep(30)\n"
    )
    words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *UNDER]
    child = subprocess.Popen(
        [*words, sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, **python_path(), TOKEN: token},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        _, said = child.communicate()
        pytest.skip(f"no pid namespace here: {said.decode()[:100]}")
    assert line == b"0\n"
    first = next(
        pid
        for pid in processes_with(token)
        if "NSpid" in (status := Path(f"/proc/{pid}/status").read_text())
        and next(one for one in status.splitlines() if one.startswith("NSpid")).split()[-1] == "1"
    )
    os.kill(first, signal.SIGTERM)
    assert child.wait(timeout=120) == 7
    child.stdout.close()
    assert child.stderr is not None
    child.stderr.close()
