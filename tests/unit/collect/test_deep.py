"""`--deep`: when it keeps its hands off, which way it takes, what it makes of the answer, and
what is left behind.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.collect import cgroup, deep, deep_refusals, own_thread, remote_exec
from trainprobe.collect.exchange import Exchange
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Evidence
from trainprobe.system.borrowed_thread import Borrowed

Start = Callable[..., "subprocess.Popen[bytes]"]
IDLE = "import sys, time; print(flush=True); time.sleep(60)"
# As torch does, without torch: a module of that name, whose function gives a pickle of a dump.
WITH_RECORDER = """
import sys, threading, types
module = types.ModuleType("torch._C._distributed_c10d")
def _dump_fr_trace(includeCollectives=True, includeStackTraces=True, onlyActive=False):
    import pickle
    entry = {"profiling_name": "gloo:barrier", "process_group": ("0", "default_pg"), "collective_seq_id": 4, "state": "scheduled", "frames": []}
    return pickle.dumps({"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": [entry]}, 2)
module._dump_fr_trace = FUNCTION
sys.modules["torch._C._distributed_c10d"] = module
print(flush=True)
threading.Event().wait(60)
"""


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(program: str = IDLE, **environment: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.1)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    with Case.create(str(tmp_path / "case"), "attach", []) as made:
        yield made


def look(case: Case, pid: int, **more: Any) -> list[Evidence]:
    return deep.look_deep(case, "job", [Member(3, pid, **more)])


def test_it_records_the_dump_and_what_was_done(case: Case, start: Start) -> None:
    process = start(WITH_RECORDER.replace("FUNCTION", "_dump_fr_trace"))
    done, dump = look(case, process.pid)
    assert (done.kind, done.outcome, done.data["method"], done.data["rank"]) == (
        "deep",
        "ok",
        "own-thread",
        3,
    )
    assert 0 < done.data["paused_s"] < 0.5
    assert (dump.kind, dump.outcome, dump.data["rank"], dump.data["entries"][0]["op"]) == (
        "flight_recorder",
        "ok",
        3,
        "barrier",
    )
    assert Path(case.folder, dump.files[0]).stat().st_size == dump.data["bytes"]
    assert process.poll() is None


@pytest.mark.parametrize(
    ("function", "outcome", "words"),
    [
        ("lambda *_: 1/0", "unavailable", "ZeroDivisionError"),
        ("lambda *_: sys.exit(3)", "timed_out", "did not come to run it"),
        ("lambda *_: b'nonsense'", "ok", ""),
        ("lambda *_: None", "unavailable", "no flight recorder"),
    ],
)
def test_a_recorder_that_misbehaves_does_not_end_the_job(
    function: str,
    outcome: str,
    words: str,
    case: Case,
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deep, "PER_RANK_S", 2.0)
    process = start(WITH_RECORDER.replace("FUNCTION", function))
    done, *dumps = look(case, process.pid)
    assert (done.outcome, words in done.reason) == (outcome, True), done
    assert [(one.outcome, bool(one.reason)) for one in dumps] == (
        [("partial", True)] if outcome == "ok" else []
    )
    time.sleep(0.1)
    assert process.poll() is None


def test_without_torch_there_is_nothing_to_ask_for(case: Case, start: Start) -> None:
    (done,) = look(case, start().pid)
    assert (done.outcome, "has not loaded torch.distributed" in done.reason) == (
        "unavailable",
        True,
    )


def test_nothing_is_left_in_the_folder_for_temporary_files(
    case: Case, start: Start, tmp_path: Path
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    look(case, start(WITH_RECORDER.replace("FUNCTION", "_dump_fr_trace"), TMPDIR=str(folder)).pid)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", deep_refusals.RECORDER_SIZES)
def test_a_recorder_that_is_off_is_not_asked(name: str, case: Case, start: Start) -> None:
    (done,) = look(case, start(**{name: "0"}).pid)
    assert (done.outcome, done.data["method"]) == ("unavailable", "")
    assert f"{name}=0" in done.reason


def test_a_stopped_process_is_left_alone(case: Case, start: Start) -> None:
    process = start()
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.05)
    (done,) = look(case, process.pid)
    assert (done.outcome, "in state T" in done.reason) == ("unavailable", True)


def test_a_traced_process_is_left_alone(start: Start) -> None:
    process = start()
    tracer = subprocess.Popen(
        [
            sys.executable,
            "-c",
            (
                f"import ctypes, time; print(ctypes.CDLL(None).ptrace(0x4206, {process.pid}, 0, 0),"
                " flush=True); time.sleep(60)"
            ),
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == b"0\n"
        assert f"traced by process {tracer.pid}" in deep_refusals.why_not(Member(0, process.pid))
    finally:
        tracer.kill()
        tracer.communicate()


def test_little_memory_refuses(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "headroom_bytes", lambda _: 200 * 2**20)
    assert deep_refusals.why_not(Member(0, start().pid)).startswith("200 MiB of memory are left")


def test_whoever_holds_the_interpreter_refuses_it(case: Case, start: Start) -> None:
    process = start("import ctypes; print(flush=True); ctypes.PyDLL(None).sleep(60)")
    (done,) = look(case, process.pid)
    assert (done.outcome, "holds the interpreter lock" in done.reason) == (
        "unavailable",
        True,
    ), done
    assert done.data["method"] == ""


def test_a_reused_pid_is_somebody_else(case: Case, start: Start) -> None:
    (done,) = look(case, start().pid, started_ticks=17)
    assert (done.outcome, "belongs to another process" in done.reason) == ("unavailable", True)


def test_a_refused_trace_is_denied_with_the_remedy(
    case: Case, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        own_thread,
        "start",
        lambda *_: Borrowed("the kernel refused to let us trace thread 1: Operation not permitted"),
    )
    (done,) = look(case, start().pid)
    assert done.outcome == "denied"
    assert "process" in done.reason


def test_only_ranks_are_asked_and_no_time_is_said(case: Case, start: Start) -> None:
    process = start()
    assert (
        deep.look_deep(
            case,
            "job",
            [Member(0, process.pid, "loader-worker"), Member(None, process.pid, "launcher")],
        )
        == []
    )
    (done,) = deep.look_deep(case, "job", [Member(0, process.pid)], deadline_s=0.1)
    assert done.outcome == "timed_out"


@pytest.mark.parametrize(
    ("version", "runs", "environ", "open_way"),
    [
        ((3, 14), True, "", True),
        ((3, 15), True, "A=1", True),
        ((3, 13), True, "", False),
        ((3, 14), False, "", False),
        (None, True, "", False),
        ((3, 14), True, "A=1\0PYTHON_DISABLE_REMOTE_DEBUG=1", False),
    ],
)
def test_the_way_of_python_3_14_is_chosen_where_it_works(
    version: tuple[int, int] | None, runs: bool, environ: str, open_way: bool
) -> None:
    assert (remote_exec.suits(version, runs, environ) == "") is open_way


def test_the_version_is_read_from_the_mapped_files(start: Start) -> None:
    assert remote_exec.python_version(start().pid) == sys.version_info[:2]


def test_sys_remote_exec_runs_the_same_file(
    case: Case, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for what only a Python 3.14 does: run the file in the process."""
    process = start(WITH_RECORDER.replace("FUNCTION", "_dump_fr_trace"))
    asked = []

    def ask(pid: int, path: str, timeout_s: float) -> str:
        asked.append((pid, timeout_s > 0))
        return own_thread.start(pid, Path(path).read_bytes()).refused

    monkeypatch.setattr(remote_exec, "suits", lambda *_: "")
    monkeypatch.setattr(remote_exec, "ask", ask)
    done, dump = look(case, process.pid)
    assert (done.outcome, done.data["method"], dump.outcome, asked) == (
        "ok",
        "sys.remote_exec",
        "ok",
        [(process.pid, True)],
    )


def test_what_remote_exec_says_is_the_reason(start: Start) -> None:
    assert "sys.remote_exec failed on process" in remote_exec.ask(start().pid, "/nowhere", 20.0)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"[]",
        b"{",
        b'{"dumps": 3}',
        b'{"dumps": [3]}',
        b'{"dumps": [{"file": "../x"}], "tried": null}',
        b"[" * 100_000,
        b"null",
    ],
)
def test_a_hostile_answer_is_evidence_with_a_reason(said: bytes, start: Start) -> None:
    with Exchange(start().pid) as exchange:
        seen = deep._understand(said, exchange, {"pid": 1}, [])
    assert seen.outcome in ("crashed", "unavailable")
    assert seen.reason


def test_a_link_is_never_followed(start: Start, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({}))
    with Exchange(start().pid) as exchange:
        os.symlink(secret, f"{exchange.path}/said")
        with pytest.raises(ValueError, match="cannot be read"):
            exchange.get("said", 100)
        os.mkfifo(f"{exchange.path}/pipe")
        with pytest.raises(ValueError, match="no plain file"):
            exchange.get("pipe", 100)
        assert exchange.get("nothing", 100) is None
    assert secret.exists()
    assert not os.path.exists(exchange.path)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be another user")
def test_the_folder_belongs_to_the_user_of_the_process(case: Case) -> None:
    command = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "/usr/bin/python3",
        "-c",
        WITH_RECORDER.replace("FUNCTION", "_dump_fr_trace"),
    ]
    process = subprocess.Popen(command, cwd="/", stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.2)
        done, dump = look(case, process.pid)
        assert (done.outcome, dump.outcome) == ("ok", "ok"), done.reason
    finally:
        process.kill()
        process.communicate()


KILLED = """
import os, signal, sys
from trainprobe.collect.exchange import Exchange
with Exchange(int(sys.argv[1])) as exchange:
    exchange.put("payload.py", b"pass")
    exchange.left = sys.argv[2] == "left"
    print(exchange.path, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["asked", "left"])
def test_what_a_killed_look_leaves_goes_with_the_next(
    how: str, case: Case, start: Start, tmp_path: Path
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    first = start(WITH_RECORDER.replace("FUNCTION", "_dump_fr_trace"), TMPDIR=str(folder))
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(first.pid), how], capture_output=True, check=False
    )
    left = Path(done.stdout.decode().strip())
    assert left in folder.iterdir()
    second = start(WITH_RECORDER.replace("FUNCTION", "_dump_fr_trace"), TMPDIR=str(folder))
    look(case, second.pid)
    # a request that the process may still run keeps its file
    assert list(folder.iterdir()) == ([left] if how == "left" else [])
    first.kill()
    first.wait()
    look(case, second.pid)
    assert list(folder.iterdir()) == []
