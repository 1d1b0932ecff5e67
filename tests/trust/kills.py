"""`diagnose` and `explain`, killed at random moments: what is left of processes and folders, and
whether the evidence can be read.

python -m tests.trust.kills [--times 40] [--seed 1]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from tests.conftest import TOKEN, processes_with, python_path

WITHIN_S = 10.0
SCRIPT = "import time\nfor step in range(400):\n    print('step', step, flush=True)\n    time.sleep(0.05)\n"
WORDS = {
    "diagnose": ("diagnose", "--nproc", "2", "--case", "case", "--", "python", "train.py"),
    "explain": ("explain", "big.log", "--case", "case"),
}


def killed(command: str, after_s: float, place: Path) -> dict[str, int]:
    token, scratch = uuid.uuid4().hex, place / "scratch"
    scratch.mkdir(parents=True)
    (place / "train.py").write_text(SCRIPT)
    (place / "big.log").write_text("[rank0]: step 1 loss 2.0\nRuntimeError: x\n" * 200_000)
    environment = {**os.environ, **python_path(), TOKEN: token, "TMPDIR": str(scratch)}
    environment["PATH"] = f"{os.path.dirname(sys.executable)}:{environment['PATH']}"
    tool = subprocess.Popen(
        [sys.executable, "-m", "trainprobe", *WORDS[command]],
        cwd=place,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(after_s)
    in_work = list(scratch.glob("trainprobe-*")) != []
    running = tool.poll() is None
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    until = time.monotonic() + WITHIN_S
    while (processes_with(token) or list(scratch.glob("trainprobe-*"))) and (
        time.monotonic() < until
    ):
        time.sleep(0.1)
    rows = unreadable = 0
    evidence = place / "case" / "evidence.jsonl"
    if evidence.exists():
        lines = evidence.read_text("utf-8").split("\n")
        for line in lines[:-1]:  # the last may be torn
            rows += 1
            try:
                json.loads(line)
            except ValueError:
                unreadable += 1
    left = processes_with(token)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return {
        "running": running,
        "in_work": in_work,
        "processes": len(left),
        "rows": rows,
        "folders": len(list(scratch.glob("trainprobe-*"))),
        "unreadable": unreadable,
    }


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--times", type=int, default=40)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--most-s", type=float, default=25.0)
    asked = options.parse_args()
    draw = random.Random(asked.seed)
    for command in WORDS:
        found = []
        for _ in range(asked.times):
            after_s = draw.uniform(0.1, asked.most_s if command == "diagnose" else 2.5)
            with tempfile.TemporaryDirectory() as place:
                found.append(killed(command, after_s, Path(place)))
        totals = {name: sum(each[name] for each in found) for name in found[0]}
        print(command, len(found), totals, flush=True)


if __name__ == "__main__":
    main()
