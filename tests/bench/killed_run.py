"""Kill `trainprobe run`, or its look, at random moments: is the job left alone, and can what was
seen until then be read?

    python -m tests.bench.killed_run [--kills 50] [--at-once 5] [--seed 1]

The job is two small ranks without torch that pause now and then, so that there are looks.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, TOKEN, processes_with

LASTS_S = 40.0
RANK = """
import os, sys, time
import trainprobe
ends, number = time.monotonic() + float(sys.argv[1]), 0
said = open(f"steps.{os.environ['RANK']}", "w")
while time.monotonic() < ends:
    sum(range(300_000))
    time.sleep(0.05)
    number += 1
    trainprobe.step(number)
    said.seek(0)
    said.write(str(number))
    said.flush()
    if number % 60 == 30:
        time.sleep(7)
open(f"done.{os.environ['RANK']}", "w").close()
"""
LAUNCHER = """
import os, subprocess, sys
ranks = [
    subprocess.Popen([sys.executable, "rank.py", *sys.argv[1:]], env={**os.environ, "RANK": str(rank),
        "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29999"})
    for rank in range(2)
]
sys.exit(max(rank.wait() for rank in ranks))
"""


def killed(number: int, after_s: float, whom: str) -> dict[str, Any]:
    """One job, one kill after so long; `whom` is run or look. Returns what was wrong after it."""
    folder, token = Path(tempfile.mkdtemp(prefix="job-")), secrets.token_hex(8)
    (folder / "rank.py").write_text(RANK)
    (folder / "launch.py").write_text(LAUNCHER)
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(
            [
                *(sys.executable, "-m", "trainprobe", "run", "--case", "case", "--"),
                *(sys.executable, "launch.py", str(LASTS_S)),
            ],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), TOKEN: token},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    ends = time.monotonic() + 120
    while whom == "look" and not looks_among(processes_with(token)) and time.monotonic() < ends:
        time.sleep(0.2)
    time.sleep(after_s if whom == "run" else after_s / 8)
    wrong: list[str] = []
    victims = [child.pid] if whom == "run" else looks_among(processes_with(token))
    for pid in victims:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    began = (folder / "steps.1").exists()
    if whom == "run":
        child.wait()
        time.sleep(4)
        left = looks_among(processes_with(token))
        if left:
            wrong.append(f"looks go on: {left}")
        wrong += unreadable(folder / "case", began)
    if began or whom == "look" or processes_with(token):
        ends = time.monotonic() + 4 * LASTS_S
        while time.monotonic() < ends and len(list(folder.glob("done.*"))) < 2:
            time.sleep(0.5)
        if len(list(folder.glob("done.*"))) < 2:
            wrong.append("the job did not end by itself")
    if whom == "look" and child.wait(timeout=120):
        wrong.append(f"the run ended with {child.returncode}")
    time.sleep(1)
    wrong += [f"still there: {pid}" for pid in processes_with(token)]
    for pid in processes_with(token):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    if not wrong:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "number": number,
        "after_s": round(after_s, 2),
        "whom": whom,
        "victims": len(victims),
        "began": began,
        "wrong": wrong,
        "folder": str(folder) if wrong else "",
    }


def looks_among(pids: Collection[int]) -> list[int]:
    """The processes that look at the job, and no part of it."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            words = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
            if b"attach" in words or any(b"py-spy" in word for word in words[:1]):
                found.append(pid)
    return found


def unreadable(case: Path, began: bool) -> list[str]:
    """What of the evidence so far cannot be read."""
    journal = case / "run.jsonl"
    if not journal.exists():
        return ["no journal"] if began else []
    wrong = []
    for line in journal.read_text(encoding="utf-8").splitlines():
        try:
            json.loads(line)
        except ValueError:
            wrong.append(f"a line of the journal: {line[:80]}")
    for look in case.glob("look-*"):
        if not (look / "evidence.jsonl").exists():
            continue
        done = subprocess.run(
            [sys.executable, "-m", "trainprobe", "explain", str(look)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode not in (0, 1, 3):
            wrong.append(f"{look.name}: explain ended with {done.returncode}: {done.stderr[-300:]}")
    return wrong


def main() -> None:
    """Kill and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--at-once", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--whom", choices=["run", "look"], default="run")
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    moments = [
        draw.uniform(0, 25) if place % 5 else draw.uniform(0, 1) for place in range(asked.kills)
    ]
    with concurrent.futures.ThreadPoolExecutor(asked.at_once) as pool:
        results = list(
            pool.map(lambda place: killed(place, moments[place], asked.whom), range(asked.kills))
        )
    for one in results:
        if one["wrong"]:
            print(one, flush=True)
    hit = sum(bool(one["victims"]) for one in results)
    bad = sum(bool(one["wrong"]) for one in results)
    print(
        f"{len(results)} kills of the {asked.whom}, {hit} that hit one: {bad} with something wrong"
    )


if __name__ == "__main__":
    main()
