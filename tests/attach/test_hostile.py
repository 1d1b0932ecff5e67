"""Attach in hostile surroundings: names that talk to terminals, a py-spy that lies, processes
that change, and a job that is not ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, TOKEN, end, processes_with, python_path

ESCAPE = "\x1b]0;owned\x07\x1b[31m"
WAITS = """
import os, sys, threading, time
with open("/proc/self/comm", "w") as comm:
    comm.write("\\x1b[31mred\\x07")
time.sleep(0) if len(sys.argv) > 1 else None
threading.Event().wait(120)
"""
EXECS = """
import os, sys, time
time.sleep(0.15)
os.execv(sys.executable, [sys.executable, __file__, *sys.argv[1:]])
"""
Ranks = Callable[..., "list[subprocess.Popen[bytes]]"]


@pytest.fixture
def ranks(token: str, tmp_path: Path) -> Iterator[Ranks]:
    """Start processes that look like ranks to anybody who reads their environment, without
    torch.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, count: int = 2, *words: str) -> list[subprocess.Popen[bytes]]:
        (tmp_path / "train.py").write_text(program)
        for rank in range(count):
            env = {
                **os.environ,
                TOKEN: token,
                "RANK": str(rank),
                "WORLD_SIZE": str(count),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": "29500",
            }
            started.append(
                subprocess.Popen(
                    [sys.executable, "train.py", *words],
                    cwd=tmp_path,
                    env=env,
                    start_new_session=True,
                )
            )
        time.sleep(0.4)
        return started

    yield start
    for process in started:
        process.kill()
        process.wait()
    end(list(processes_with(token)))


def attach(
    pid: int,
    folder: Path,
    *options: str,
    env: dict[str, str] | None = None,
    before: tuple[str, ...] = (),
) -> tuple[subprocess.CompletedProcess[bytes], list[dict[str, Any]]]:
    case = folder / "case"
    command = [
        *before,
        sys.executable,
        "-m",
        "trainprobe",
        "attach",
        str(pid),
        "--case",
        str(case),
        "--json",
        str(folder / "report.json"),
        *options,
    ]
    environment = {
        **os.environ,
        "NO_COLOR": "1",
        "HOME": str(folder),
        **python_path(),
        **(env or {}),
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, timeout=300, check=False
    )
    lines = (
        (case / "evidence.jsonl").read_text().splitlines()
        if (case / "evidence.jsonl").exists()
        else []
    )
    return done, [json.loads(line) for line in lines]


def well_behaved(done: subprocess.CompletedProcess[bytes], folder: Path) -> None:
    said = done.stdout + done.stderr
    assert done.returncode in (0, 1, 3), said.decode(errors="replace")
    assert b"Traceback" not in said
    assert [byte for byte in said if byte < 32 and byte not in b"\n\t"] == []
    text = (folder / "report.json").read_text()
    assert json.loads(text)["schema"] == "trainprobe.report/1"
    assert not {"\x1b", "\x07"} & set(json.dumps(json.loads(text), ensure_ascii=False))


def test_names_that_talk_to_the_terminal_do_not_reach_it(ranks: Ranks, tmp_path: Path) -> None:
    started = ranks(WAITS, 2, ESCAPE)
    done, evidence = attach(started[0].pid, tmp_path)
    well_behaved(done, tmp_path)
    assert any(one["kind"] == "process" for one in evidence)


ONE = (
    '{"thread_id": 1, "os_thread_id": 1, "active": true, "owns_gil": false, "thread_name": "T",'
    ' "frames": [{"name": "f", "filename": "train.py", "line": 3}]}'
)
LIES = {
    "control characters": (
        "printf '%s' '["
        + ONE.replace('"f"', '"\\u001b[31mf\\u0007"').replace("train.py", "\\u001b]0;x\\u0007.py")
        + "]'"
    ),
    "raw control characters": 'printf \'[{"frames": [{"name": "\\033[31m"}]}]\'',
    "garbage": "head -c 100000 /dev/urandom",
    "another form": "echo '{\"threads\": 3}'",
    "hangs": "sleep 100",
    "one gigabyte": "yes '" + ONE + ",' | head -c 1000000000",
    "deep": "printf '%0200000d' 0 | tr 0 '['",
    "a long complaint": "yes 'Error: \\033[31m' | head -c 20000000 >&2; exit 1",
    "a hundred thousand frames": (
        'printf \'[{"thread_id": 1, "os_thread_id": 1, "frames": [\'; for i in $(seq 20000); do'
        ' printf \'%s\' \'{"name": "f", "filename": "t.py", "line": 3},\'; done; printf \'{"name":'
        ' "f", "filename": "t.py", "line": 3}]}]\''
    ),
    "ends the process": (
        "for word; do case $word in [0-9]*) kill -9 $word;; esac; done; sleep 0.05; echo '[]'"
    ),
    "another version": "echo \"error: Found argument '--json' which wasn't expected\" >&2; exit 1",
    "crashes in mid-answer": 'printf \'[{"thread_id": 1, "frames": [\'; kill -SEGV $$',
    "hangs and cannot be asked to end": "trap '' TERM INT HUP; sleep 600 & sleep 600",
    "leaves a child that holds its output": "sleep 600 & echo '[" + ONE + "]'",
    "stops the process": (
        "for word; do case $word in [0-9]*) kill -STOP $word;; esac; done; echo '[" + ONE + "]'"
    ),
}

OFTEN = ("control characters", "garbage", "another version", "ends the process")


def commands() -> Iterator[tuple[str, str]]:
    """Each process with its command line."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield folder.name, (folder / "cmdline").read_bytes().decode(errors="replace")


@pytest.mark.parametrize(
    "lie", [lie if lie in OFTEN else pytest.param(lie, marks=pytest.mark.soak) for lie in LIES]
)
def test_a_py_spy_that_lies_is_evidence_with_a_reason(
    lie: str, ranks: Ranks, tmp_path: Path
) -> None:
    started = ranks(WAITS)
    fake = tmp_path / "py-spy"
    fake.write_text("#!/bin/bash\n" + LIES[lie] + "\n")
    fake.chmod(0o755)
    done, evidence = attach(
        started[0].pid, tmp_path, "--timeout", "5", env={"TRAINPROBE_PY_SPY": str(fake)}
    )
    well_behaved(done, tmp_path)
    looks = [one for one in evidence if one["kind"] == "stacks.python"]
    assert looks
    assert all(one["reason"] for one in looks if one["outcome"] != "ok")
    assert not [pid for pid, words in commands() if str(fake) in words]
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)


def test_processes_that_become_others_under_the_look(ranks: Ranks, tmp_path: Path) -> None:
    started = ranks(EXECS)
    done, evidence = attach(started[0].pid, tmp_path, "--deep")
    well_behaved(done, tmp_path)
    assert [process.poll() for process in started] == [None, None]
    assert all(one["reason"] for one in evidence if one["outcome"] != "ok")


@pytest.fixture
def nobody() -> Iterator[
    Callable[[int], tuple[subprocess.CompletedProcess[bytes], list[dict[str, Any]], Path]]
]:
    """Attach as the user nobody, with an interpreter and a py-spy that nobody may run."""
    python, setpriv = shutil.which("python3", path="/usr/bin"), shutil.which("setpriv")
    py_spy = shutil.which(
        "py-spy", path=os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")
    )
    if os.geteuid() != 0 or setpriv is None or python is None or py_spy is None:
        pytest.skip(
            "only root, with setpriv, python3 in /usr/bin and py-spy, can look with another user's"
            " eyes"
        )
    folder = Path("/tmp") / f"nobody-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    shutil.copy(py_spy, folder / "py-spy")
    os.chown(folder, 65534, 65534)
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    probe = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        python,
        "-c",
        "import trainprobe.cli.app, typer, yaml",
    ]
    env = {"PYTHONPATH": f"{ROOT}:{packages}", "PATH": os.environ["PATH"]}
    if subprocess.run(probe, cwd=folder, env=env, capture_output=True, check=False).returncode:
        shutil.rmtree(folder)
        pytest.skip(f"nobody cannot run trainprobe with {python}")

    def look(pid: int) -> tuple[subprocess.CompletedProcess[bytes], list[dict[str, Any]], Path]:
        words = [
            *probe[:5],
            "-m",
            "trainprobe",
            "attach",
            str(pid),
            "--deep",
            "--case",
            str(folder / "case"),
            "--json",
            str(folder / "report.json"),
        ]
        environment = {
            **env,
            "HOME": str(folder),
            "NO_COLOR": "1",
            "TRAINPROBE_PY_SPY": str(folder / "py-spy"),
        }
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, timeout=300, check=False
        )
        return (
            done,
            [
                json.loads(line)
                for line in (folder / "case" / "evidence.jsonl").read_text().splitlines()
            ],
            folder,
        )

    yield look
    shutil.rmtree(folder)


@pytest.mark.root
def test_a_job_of_another_user_still_shows_who_is_stopped_and_the_remedy_is_printed(
    ranks: Ranks, nobody: Any
) -> None:
    (rank,) = ranks(WAITS, 1)
    os.kill(rank.pid, signal.SIGSTOP)
    done, evidence, folder = nobody(rank.pid)
    well_behaved(done, folder)
    text = done.stdout.decode()
    assert json.loads((folder / "report.json").read_text())["verdict"] == "hung", text
    assert "stopped" in text
    process = next(one["data"] for one in evidence if one["kind"] == "process")
    assert (process["state"], "train.py" in process["cmdline"], bool(process["threads"])) == (
        "T",
        True,
        True,
    )
    refused = {one["kind"] for one in evidence if one["outcome"] == "denied"}
    assert {"files", "sockets"} <= refused
    assert "run trainprobe as root" in " ".join(text.split()), text
    os.kill(rank.pid, signal.SIGCONT)


@pytest.mark.root
def test_a_job_of_another_user_that_sleeps_is_undetermined_with_the_remedy(
    ranks: Ranks, nobody: Any
) -> None:
    (rank,) = ranks(WAITS, 1)
    done, evidence, folder = nobody(rank.pid)
    well_behaved(done, folder)
    assert done.returncode == 3, done.stdout
    assert "run trainprobe as root" in " ".join(done.stdout.decode().split()), done.stdout.decode()
    assert {"stacks.python", "deep"} <= {
        one["kind"] for one in evidence if one["outcome"] == "denied"
    }
    assert rank.poll() is None
