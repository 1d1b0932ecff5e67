"""Reading flight-recorder dumps: `trainprobe explain` against bare unpickling of the same files,
and against PyTorch's analyzer.

python tests/bench/dumps.py [--dumps 64 256 1024] [--entries 1000] [--no-analyzer]

The CPU time of explaining a single dump is what starting the tool costs, and is shown apart. Fails
where an explanation takes more than MOST_RATIO times the CPU time of CPython's own unpickler on top
of that, where all its processes together need more than 300 MB, where the time for each dump grows
with their number, or where the missing rank is not named.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

MOST_RATIO, MOST_MB, MOST_GROWTH = 1.5, 300, 1.5
CULPRIT = 7
SAMPLE_S = 0.02
BARE = """
import os, pickle, sys
for name in sorted(os.listdir(sys.argv[1])):
    with open(os.path.join(sys.argv[1], name), "rb") as file:
        pickle.load(file)
"""


class Used(NamedTuple):
    """What a command and its children used; `mb` is the most that they held at one time."""

    wall_s: float
    cpu_s: float
    mb: float


TORCH = "/opt/venv/lib/python3.11/site-packages/torch/distributed"
STACK = [
    ("all_reduce", f"{TORCH}/distributed_c10d.py", 3000),
    ("wrapper", f"{TORCH}/c10d_logger.py", 80),
    *((f"layer{depth}", f"/home/user/model_{depth % 3}.py", 10 + depth) for depth in range(8)),
    ("step", "/home/user/train.py", 10),
    ("<module>", "/home/user/train.py", 99),
]
FRAMES = [{"name": name, "filename": file, "line": line} for name, file, line in STACK]


def entry(number: int, state: str) -> dict[str, Any]:
    """As NCCL's recorder writes it: entries share their frames, and the text in them."""
    return {
        "frames": [*FRAMES],
        "record_id": number,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "op_id": number,
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": 1_700_000_000_000_000_000 + number * 1_000_000,
        "input_sizes": [[4096, 4]],
        "output_sizes": [[4096, 4]],
        "input_dtypes": ["Float"],
        "output_dtypes": ["Float"],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": state == "completed",
        "timeout_ms": 600_000,
        "is_p2p": False,
    }


def write(folder: Path, dumps: int, entries: int) -> None:
    """All ranks wait in the last call, which one rank did not join."""
    folder.mkdir()
    rows = [entry(number, "completed") for number in range(1, entries)]
    contents = [_dump(rows, dumps), _dump([*rows, entry(entries, "started")], dumps)]
    for rank in range(dumps):
        (folder / f"nccl_trace_rank_{rank}").write_bytes(contents[rank != CULPRIT])


def _dump(rows: list[dict[str, Any]], dumps: int) -> bytes:
    last = rows[-1]["collective_seq_id"]
    status = {f"last_{event}_collective": last for event in ("enqueued", "started", "completed")}
    data = {
        "version": "2.10",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(dumps)))}},
        "pg_status": {"0": status},
        "comm_lib_version": "2.27.3",
        "entries": rows,
    }
    return pickle.dumps(data, protocol=2)


def measured(command: list[str], environment: dict[str, str]) -> Used:
    began = time.perf_counter()
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    most_kb = 0
    while True:
        done, _, used = os.wait4(child.pid, os.WNOHANG)
        if done:
            child.returncode = 0  # it has been waited for
            wall_s = time.perf_counter() - began
            return Used(wall_s, used.ru_utime + used.ru_stime, most_kb / 1024)
        most_kb = max(most_kb, _resident_kb(child.pid))
        time.sleep(SAMPLE_S)


def _resident_kb(pid: int) -> int:
    """Of a process and all below it; 0 for one that has just gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        kids = [
            int(kid)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for kid in (task / "children").read_text().split()
        ]
    except (OSError, IndexError, ValueError):
        return 0
    return pages * 4 + sum(map(_resident_kb, kids))


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--dumps", type=int, nargs="+", default=[64, 256, 1024])
    options.add_argument("--entries", type=int, default=1000)
    options.add_argument("--no-analyzer", action="store_true", help="Leave out torchfrtrace.")
    asked = options.parse_args()
    failures, each = [], []
    with tempfile.TemporaryDirectory() as place:
        report, folder = Path(place, "report.json"), Path(place, "dumps")
        # As an installation has it: compiled once.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(place, "compiled"))}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        tool = os.path.join(os.path.dirname(sys.executable), "trainprobe")
        explain = [tool, "explain", str(folder), "--quiet", "--json", str(report)]
        write(folder, 1, 2)
        start = [measured(explain, environment) for _ in range(3)][-1]
        shutil.rmtree(folder)
        print(f"start-up: {start.wall_s:.2f} s (CPU {start.cpu_s:.2f})", flush=True)
        for dumps in asked.dumps:
            write(folder, dumps, asked.entries)
            bare = measured([sys.executable, "-c", BARE, str(folder)], environment)
            ours = measured(explain, environment)
            blamed = [suspect["ranks"] for suspect in json.loads(report.read_text())["suspects"]]
            ratio = (ours.cpu_s - start.cpu_s) / bare.cpu_s
            line = (
                f"{dumps} dumps: bare {bare.wall_s:.2f} s (CPU {bare.cpu_s:.2f}), explain"
                f" {ours.wall_s:.2f} s (CPU {ours.cpu_s:.2f}), ratio {ours.wall_s / bare.wall_s:.2f}"
                f" (CPU without the start {ratio:.2f}), {ours.mb:.0f} MB, blames {blamed}"
            )
            analyzer = shutil.which("torchfrtrace", path=os.path.dirname(sys.executable))
            if analyzer and not asked.no_analyzer:
                took = measured([analyzer, str(folder), "-p", "nccl_trace_rank_"], environment)
                line += f"; torchfrtrace {took.wall_s:.2f} s (CPU {took.cpu_s:.2f})"
            print(line, flush=True)
            each.append((ours.cpu_s - start.cpu_s) / dumps)
            if [CULPRIT] not in blamed:
                failures.append(f"{dumps} dumps: rank {CULPRIT} is not blamed")
            if ratio > MOST_RATIO:
                failures.append(f"{dumps} dumps: more than {MOST_RATIO} times bare unpickling")
            if ours.mb > MOST_MB:
                failures.append(f"{dumps} dumps: more than {MOST_MB} MB")
            shutil.rmtree(folder)
    if each[-1] > MOST_GROWTH * each[0]:
        failures.append("the time for each dump grows with their number")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
