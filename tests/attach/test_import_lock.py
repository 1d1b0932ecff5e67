"""`trainprobe attach` on ranks that wait for the import lock: who holds it, and in which import."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.attach.started import Started, started
from tests.conftest import ROOT

pytestmark = pytest.mark.soak

RANK = """
import os, time, trainprobe
open("pid.rank" + os.environ["RANK"], "w").write(str(os.getpid()))
while os.environ["RANK"] != "0" and not os.path.exists("held"):
    time.sleep(0.05)
with trainprobe.import_lock("job.lock"):
    open("held", "w").close()
    import napping
"""
HOLDER = """
import os, time, trainprobe
with trainprobe.import_lock("job.lock"):
    open("held", "w").close()
    open("pid.holder", "w").write(str(os.getpid()))
    time.sleep(300)
"""


def ranks(job: Started, script: str) -> list[int]:
    for rank in range(2):
        job.start(
            script,
            env={
                "RANK": rank,
                "LOCAL_RANK": rank,
                "WORLD_SIZE": 2,
                "MASTER_ADDR": "localhost",
                "MASTER_PORT": 29500,
                "PYTHONPATH": ROOT,
            },
        )
    return [job.pid_of(f"rank{rank}") for rank in range(2)]


def attached(pid: int, folder: Path) -> dict[str, Any]:
    """The report on a job that has stood still for a while."""
    time.sleep(20)
    command = [
        sys.executable,
        "-m",
        "trainprobe",
        "attach",
        str(pid),
        "--json",
        "-",
        "--case",
        str(folder / "case"),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.fixture
def job(tmp_path: Path) -> Any:
    with started(tmp_path, uuid.uuid4().hex) as jobs:
        jobs.write("napping.py", "import time\ntime.sleep(300)\n")
        jobs.write("fit.py", RANK)
        jobs.write("other.py", HOLDER)
        yield jobs


def test_a_holder_outside_the_job_is_named_with_the_lock(job: Started, tmp_path: Path) -> None:
    job.start("other.py", env={"PYTHONPATH": ROOT})
    holder = job.pid_of("holder")
    report = attached(ranks(job, "fit.py")[1], tmp_path)
    assert report["verdict"] == "hung", report
    first = report["causes"][0]
    assert (first["id"], first["named"], first["pids"]) == ("file-lock-held", True, [holder])
    assert f"{tmp_path}/job.lock" in first["summary"]


def test_a_rank_that_holds_it_is_named_with_its_import(job: Started, tmp_path: Path) -> None:
    report = attached(ranks(job, "fit.py")[1], tmp_path)
    assert report["verdict"] == "hung", report
    first = report["causes"][0]
    assert (first["id"], first["named"], first["ranks"]) == ("import-hang", True, [0])
    assert "napping" in first["summary"]
    assert any(
        f"{tmp_path}/job.lock" in f"{link['waiter']} {link['awaited']}" for link in first["chain"]
    ), first["chain"]
