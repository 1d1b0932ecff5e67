"""A job that dies while it is looked at: real processes, without torch."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attach.started import Started, started
from tests.conftest import python_path

RANK = """
    import os, socket, sys, time

    rank = int(os.environ["RANK"])
    if rank == 0:
        server = socket.create_server(("127.0.0.1", 0))
        with open("port.tmp", "w") as file:
            file.write(str(server.getsockname()[1]))
        os.rename("port.tmp", "port")
        talk, _ = server.accept()
    else:
        while not os.path.exists("port"):
            time.sleep(0.02)
        talk = socket.create_connection(("127.0.0.1", int(open("port").read())))
    with open(f"pid.rank{rank}.tmp", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"pid.rank{rank}.tmp", f"pid.rank{rank}")
    for step in range(100000):
        for part in range(1000):
            step += part
        time.sleep(0.01)
"""


@pytest.fixture
def jobs(tmp_path: Path, token: str) -> Iterator[Started]:
    with started(tmp_path, token) as found:
        yield found


def test_a_watch_ends_with_the_job_and_tells_who_died_first(jobs: Started, tmp_path: Path) -> None:
    jobs.write("train.py", RANK)
    for rank in (0, 1):
        jobs.start(
            "train.py",
            env={
                "RANK": rank,
                "WORLD_SIZE": 2,
                "LOCAL_RANK": rank,
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": 29500,
            },
        )
    pids = [jobs.pid_of(f"rank{rank}") for rank in (0, 1)]
    argv = [
        sys.executable,
        "-m",
        "trainprobe",
        "attach",
        str(pids[0]),
        "--watch",
        "120",
        "--case",
        str(tmp_path / "case"),
        "--json",
        str(tmp_path / "r.json"),
    ]
    ran = subprocess.Popen(
        argv,
        env={**os.environ, **python_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert ran.stderr is not None
    for line in ran.stderr:
        if re.search(r"\blook \d", line):
            break
    for rank in (1, 0):
        os.kill(pids[rank], signal.SIGKILL)
        jobs.children[rank].wait(timeout=10)
    _, err = ran.communicate(timeout=60)  # two minutes too early

    report = json.loads((tmp_path / "r.json").read_text())
    assert "the job has ended" in err
    assert (ran.returncode, report["verdict"]) == (
        (1, "crashed") if report["causes"] else (3, "undetermined")
    )
    assert {row["state"] for row in report["world"]["ranks"]} <= {"crashed", "exited"}
