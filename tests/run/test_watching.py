"""Real jobs under `trainprobe run`: one that hangs, one that fails, one that pauses."""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attach.started import until
from tests.conftest import TOKEN, processes_with, python_path
from trainprobe.cli.exit_codes import REQUEUE
from trainprobe.supervise.heartbeats import Heartbeats

pytestmark = pytest.mark.torch

JOB = """
import os, signal, sys, time
import torch, torch.distributed as dist
import trainprobe

what, says = sys.argv[1], sys.argv[2:] == ["says"]

def step(number):
    dist.all_reduce(torch.ones(4))
    time.sleep(0.05)
    if says:
        trainprobe.step(number)

def wait_for_the_shard():
    while not os.path.exists("shard.ready"):
        time.sleep(0.05)

def evaluate():
    ends = time.monotonic() + 12
    while time.monotonic() < ends:
        torch.rand(300, 300) @ torch.rand(300, 300)

def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for number in range(100):
        step(number)
        if number == 40 and rank == 0:
            open("forty", "w").close()
        if number == 40 and rank == 1 and what == "hangs":
            wait_for_the_shard()
        if number == 40 and rank == 1 and what == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 40 and what == "evaluates":
            if rank == 0:
                evaluate()
            dist.barrier()
    dist.destroy_process_group()

main()
"""


class Run:
    """`trainprobe run` on a job of two ranks."""

    def __init__(
        self, folder: Path, token: str, *words: str, options: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        (folder / "train.py").write_text(JOB)
        torchrun = os.path.join(os.path.dirname(sys.executable), "torchrun")
        stderr = (folder / "stderr").open("wb")
        self.child = subprocess.Popen(
            [
                *(sys.executable, "-m", "trainprobe", "run", "--case", "case", *options, "--"),
                *(torchrun, "--standalone", "--nproc-per-node", "2", "train.py", *words),
            ],
            cwd=folder,
            env={**os.environ, **python_path(), TOKEN: token, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
        stderr.close()

    @property
    def said(self) -> str:
        return (self.folder / "stderr").read_text(errors="replace")

    def events(self, name: str = "") -> list[dict[str, Any]]:
        lines = (self.folder / "case" / "run.jsonl").read_text().splitlines()
        return [one for line in lines if (one := json.loads(line))["event"] == name or not name]

    def end(self) -> None:
        if self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGTERM)
            self.child.wait(timeout=60)
        assert self.child.stdout is not None
        self.child.stdout.close()


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A service that takes JSON, and what it got."""
    got: list[dict[str, Any]] = []

    class Service(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook?token=sesame", got
    server.shutdown()
    server.server_close()


def test_a_hang_is_reported_told_and_ended_by_policy(
    job_folder: Path, token: str, webhook: tuple[str, list[dict[str, Any]]]
) -> None:
    url, got = webhook
    teller = f"{sys.executable} -c \"import sys; open('told', 'w').write(sys.stdin.read())\""
    options = ("--on-hang=requeue", "--notify", url, "--notify", teller, "--metrics", "m.prom")
    run = Run(job_folder, token, "hangs", "says", options=options)
    try:
        assert run.child.wait(timeout=300) == REQUEUE, run.said
        assert "rank-stuck" in run.said
        assert "wait_for_the_shard" in run.said
        (hook,) = got
        assert (hook["event"], hook["verdict"], hook["ranks"]) == ("hung", "hung", [1])
        assert hook["cause"]["id"] == "rank-stuck"
        assert "sesame" not in json.dumps(hook)
        assert (job_folder / "told").read_text().startswith("hung on ")
        assert "trainprobe_run_alarms_total 1\n" in (job_folder / "m.prom").read_text()
        assert (job_folder / "case" / "look-1" / "evidence.jsonl").exists()
        assert until(lambda: not processes_with(token), 5.0)
    finally:
        run.end()


def test_a_job_that_goes_on_again_is_told(job_folder: Path, token: str) -> None:
    run = Run(job_folder, token, "hangs")
    try:
        assert until(lambda: "HUNG" in run.said, 300.0), run.said
        assert run.child.poll() is None
        (job_folder / "shard.ready").write_text("")
        assert run.child.wait(timeout=60) == 0
    finally:
        run.end()


def test_who_died_first_is_told_with_the_codes_of_the_launcher(
    job_folder: Path, token: str
) -> None:
    run = Run(job_folder, token, "dies")
    try:
        assert run.child.wait(timeout=300) == 1
        assert "Rank 1" in run.said
        assert "CRASHED" in run.said
        first = run.events("ended")[0]
        assert (first["rank"], first["how"]) == (1, "SIGKILL")
    finally:
        run.end()


def test_an_evaluation_on_rank_0_is_no_alarm(job_folder: Path, token: str) -> None:
    run = Run(job_folder, token, "evaluates")
    try:
        assert run.child.wait(timeout=300) == 0, run.said
        looks = run.events("looked")
        assert looks, "such a pause is worth a look"
        assert not [one for one in looks if one["means"] in ("hung", "unseen")]
        assert "HUNG" not in run.said
    finally:
        run.end()


def test_the_death_of_the_tool_leaves_the_job_alone(job_folder: Path, token: str) -> None:
    run = Run(job_folder, token, "goes", "says")
    try:
        assert until((job_folder / "forty").exists, 300.0)
        run.child.kill()
        run.child.wait()
        assert len(processes_with(token)) >= 3, "torchrun and its ranks"
        assert until(lambda: not processes_with(token), 60.0), "it ends by itself"
        assert "Traceback" not in run.said
    finally:
        run.end()
        Heartbeats().close()  # clears up what was left
