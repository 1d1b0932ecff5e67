"""Secrets of a job that is attached to stay out of the case and out of every report: in
arguments, variables, names and the source.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.conftest import TOKEN, end, processes_with, python_path

# By where they are planted. The first two have no shape that gives them away: only the names beside
# them do.
VARIABLE, ARGUMENT, ASSIGNED = (
    "plainwords-of-the-job-7",
    "walrus-candle-19-orbit",
    "maple-harbor-23-violin",
)
HF, GITHUB, SLACK, URL = (
    "hf_" + "QwErTyUiOpAsDfGhJkLz",
    "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345",
    "xoxb-" + "1234567890-abcdefghij",
    "s3cr3t-of-url",
)
SECRETS = {
    "variable": VARIABLE,
    "argument": ARGUMENT,
    "assigned": ASSIGNED,
    "hf": HF,
    "github": GITHUB,
    "slack": SLACK,
    "url": URL,
}
PROGRAM = f"""
import ctypes, os, socket, sys, threading
os.mkdir("cache-" + os.environ["SERVICE_API_KEY"])
held = open("cache-" + os.environ["SERVICE_API_KEY"] + "/{GITHUB}.lock", "w")
listening = socket.socket(socket.AF_UNIX)
listening.bind("{HF}.sock")
listening.listen()
print("using https://me:{URL}@hub.example.org/ and", os.environ["SERVICE_API_KEY"], flush=True)
threading.Thread(target=threading.Event().wait, name="upload {SLACK}", daemon=True).start()
def fetch(api_key="{ASSIGNED}"):
    threading.Event().wait(120)
fetch()
"""


def test_no_secret_of_the_job_reaches_the_case_or_a_report(token: str, tmp_path: Path) -> None:
    folder = tmp_path / "case"
    (tmp_path / "train.py").write_text(PROGRAM)
    argv = [
        sys.executable,
        "train.py",
        "--api-key",
        ARGUMENT,
        f"--hub=https://me:{URL}@hub.example.org/x",
        f"--token={HF}",
    ]
    rank = {
        TOKEN: token,
        "RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
    }
    with (tmp_path / "train.log").open("wb") as log:
        job = subprocess.Popen(
            argv,
            cwd=tmp_path,
            env={**os.environ, **rank, "SERVICE_API_KEY": VARIABLE, "GITHUB_TOKEN": GITHUB},
            stdout=log,
            stderr=log,
        )
    try:
        for _ in range(200):
            if (tmp_path / "train.log").read_bytes():
                break
            time.sleep(0.05)
        time.sleep(0.3)
        environment = {**os.environ, "NO_COLOR": "1", **python_path()}
        words = [
            sys.executable,
            "-m",
            "trainprobe",
            "attach",
            str(job.pid),
            "--case",
            str(folder),
            "--json",
            str(tmp_path / "report.json"),
        ]
        done = subprocess.run(
            words, cwd="/", env=environment, capture_output=True, timeout=120, check=False
        )
    finally:
        job.kill()
        job.wait()
        end(list(processes_with(token)))
    assert done.returncode in (0, 1, 3), done.stderr
    records = [json.loads(line) for line in (folder / "evidence.jsonl").read_text().splitlines()]
    assert {"job", "process", "stacks.python", "files", "sockets"} <= {
        record["kind"] for record in records
    }
    whole = (folder / "evidence.jsonl").read_text()
    assert "<hidden:" in whole
    assert "train.py" in whole  # what is no secret stays
    for place in (
        *(path for path in folder.rglob("*") if path.is_file()),
        tmp_path / "report.json",
    ):
        content = place.read_bytes() + str(place.relative_to(tmp_path)).encode()
        assert {name for name, secret in SECRETS.items() if secret.encode() in content} == set(), (
            place
        )
    assert {
        name for name, secret in SECRETS.items() if secret.encode() in done.stdout + done.stderr
    } == set()
