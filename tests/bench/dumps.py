"""Reading flight-recorder dumps: `trainprobe explain` against bare unpickling of the same files,
and against PyTorch's analyzer.

python tests/bench/dumps.py [--dumps 64 256 1024] [--entries 1000] [--no-analyzer]

`make bench-dumps` reads 1,024 to 16,384 dumps of 200 entries: 2.4 GB of files, some minutes.

The CPU time of explaining a single dump is what starting the tool costs, and is shown apart; CPU
time is compared, since other work on the machine changes it least. Fails where an explanation takes
more than MOST_RATIO times the CPU time of CPython's own unpickler on top of the start, where all
its processes together need more than 300 MB, where the time for each dump grows with their number,
or where the missing rank is not named.
"""

from __future__ import annotations

import argparse
import json
import math
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
ANALYZER_S = 300.0
COLUMNS = (
    ("dumps", 6),
    ("entries", 7),
    ("", 12),
    ("wall s", 8),
    ("CPU s", 8),
    ("without start", 13),
    ("of bare", 7),
    ("MB", 5),
    ("names", 0),
)
BARE = """
import os, pickle, sys
for name in sorted(os.listdir(sys.argv[1])):
    with open(os.path.join(sys.argv[1], name), "rb") as file:
        pickle.load(file)
"""


class Used(NamedTuple):
    """What a command and its children used; `mb` is the most that they held at one time. `over`:
    it was ended at its limit.
    """

    wall_s: float
    cpu_s: float
    mb: float
    over: bool = False


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
    """All ranks wait in the last call, which one rank did not join. No two ranks made an entry at
    the same time.
    """
    folder.mkdir()
    rows = [entry(number, "completed") for number in range(1, entries)]
    rows.append(entry(entries, "started"))
    for rank in range(dumps):
        own = rows[: entries - (rank == CULPRIT)]
        made = [{**row, "time_created_ns": row["time_created_ns"] + rank * 1000} for row in own]
        (folder / f"nccl_trace_rank_{rank}").write_bytes(_dump(made, dumps))


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


def measured(command: list[str], environment: dict[str, str], limit_s: float = math.inf) -> Used:
    began = time.perf_counter()
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    most_kb, over = 0, False
    while True:
        done, _, used = os.wait4(child.pid, os.WNOHANG)
        wall_s = time.perf_counter() - began
        if done:
            child.returncode = 0  # it has been waited for
            return Used(wall_s, used.ru_utime + used.ru_stime, most_kb / 1024, over)
        if wall_s > limit_s and not over:
            over = True
            child.kill()
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


def line(*cells: object) -> str:
    return "  ".join(
        str(cell).rjust(width) for cell, (_, width) in zip(cells, COLUMNS, strict=True)
    )


def row(size: tuple[int, int], who: str, used: Used, start_s: float, bare: Used, names: str) -> str:
    cpu_s, over = used.cpu_s - start_s, ">" if used.over else ""
    return line(
        *size,
        who,
        f"{over}{used.wall_s:.2f}",
        f"{over}{used.cpu_s:.2f}",
        f"{over}{cpu_s:.2f}",
        f"{over}{cpu_s / bare.cpu_s:.2f}",
        f"{used.mb:.0f}",
        names,
    )


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
        folder_of_programs = os.path.dirname(sys.executable)
        tool = os.path.join(folder_of_programs, "trainprobe")
        analyzer = shutil.which("torchfrtrace", path=folder_of_programs)
        explain = [tool, "explain", str(folder), "--quiet", "--json", str(report)]
        unpickle = [sys.executable, "-c", BARE, str(folder)]
        analyze = [analyzer or "", str(folder), "-p", "nccl_trace_rank_"]

        def start_of(command: list[str]) -> float:
            return [measured(command, environment).cpu_s for _ in range(3)][-1]

        write(folder, 1, 2)
        start_s, bare_start_s = start_of(explain), start_of(unpickle)
        shutil.rmtree(folder)
        print(f"CPU time of a start: explain {start_s:.2f} s, unpickling {bare_start_s:.2f} s")
        print(line(*(name for name, _ in COLUMNS)), flush=True)
        for dumps in asked.dumps:
            write(folder, dumps, asked.entries)
            size = (dumps, asked.entries)
            bare = measured(unpickle, environment)
            ours = measured(explain, environment)
            blamed = [suspect["ranks"] for suspect in json.loads(report.read_text())["suspects"]]
            print(row(size, "unpickling", bare, 0.0, bare, ""))
            print(row(size, "explain", ours, start_s, bare, f"{blamed}"), flush=True)
            if analyzer and not asked.no_analyzer:
                theirs = measured(analyze, environment, ANALYZER_S)
                print(row(size, "torchfrtrace", theirs, 0.0, bare, ""), flush=True)
            ratio = (ours.cpu_s - start_s) / bare.cpu_s
            each.append((ours.cpu_s - start_s) / dumps)
            if [CULPRIT] not in blamed:
                failures.append(f"{dumps} dumps: rank {CULPRIT} is not blamed")
            if ratio > MOST_RATIO:
                failures.append(f"{dumps} dumps: {ratio:.2f} times bare unpickling")
            if ours.mb > MOST_MB:
                failures.append(f"{dumps} dumps: {ours.mb:.0f} MB")
            shutil.rmtree(folder)
    if each[-1] > MOST_GROWTH * each[0]:
        failures.append("the time for each dump grows with their number")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
