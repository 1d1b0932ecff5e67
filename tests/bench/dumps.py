"""Reading flight-recorder dumps: `trainprobe explain` against bare unpickling of the same files, and against PyTorch's analyzer.

python tests/bench/dumps.py [--dumps 64 256] [--entries 1000]

Fails where an explanation takes more than MOST_RATIO times the CPU time of CPython's own unpickler, needs more than 300 MB,
grows faster than the number of dumps, or does not name the rank that is missing.
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
from typing import Any

MOST_RATIO, MOST_MB, MOST_GROWTH = 8.0, 300, 1.5
CULPRIT = 7
BARE = """
import pickle, sys
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        pickle.load(file)
"""


def entry(number: int, state: str) -> dict[str, Any]:
    """As NCCL's recorder writes it, with a stack of a dozen frames."""
    torch = "/opt/venv/lib/python3.11/site-packages/torch/distributed"
    stack = [("all_reduce", f"{torch}/distributed_c10d.py", 3000), ("wrapper", f"{torch}/c10d_logger.py", 80)]
    stack += [(f"layer{depth}", f"/home/user/model_{depth % 3}.py", 10 + depth) for depth in range(8)]
    stack += [("step", "/home/user/train.py", 10), ("<module>", "/home/user/train.py", 99)]
    return {
        "frames": [{"name": name, "filename": file, "line": line} for name, file, line in stack],
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


def write(folder: Path, dumps: int, entries: int) -> list[str]:
    """All ranks wait in the last call, which one rank did not join."""
    for rank in range(dumps):
        rows = [entry(number, "completed") for number in range(1, entries)]
        if rank != CULPRIT:
            rows.append(entry(entries, "started"))
        status = {"0": {f"last_{word}_collective": rows[-1]["collective_seq_id"] for word in ("enqueued", "started", "completed")}}
        config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(dumps)))}}
        data = {"version": "2.10", "pg_config": config, "pg_status": status, "comm_lib_version": "2.27.3", "entries": rows}
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(data, protocol=2))
    return [str(path) for path in sorted(folder.iterdir())]


def timed(command: list[str]) -> tuple[float, float, float]:
    """Wall and CPU seconds, and MB of the largest process, the command's own children included."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(child.pid, 0)
    child.returncode = 0  # it has been waited for
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--dumps", type=int, nargs="+", default=[64, 256])
    options.add_argument("--entries", type=int, default=1000)
    asked = options.parse_args()
    failures, each = [], []
    for dumps in asked.dumps:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place, "dumps")
            folder.mkdir()
            paths = write(folder, dumps, asked.entries)
            report = Path(place, "report.json")
            bare, bare_cpu, _ = timed([sys.executable, "-c", BARE, *paths])
            tool = os.path.join(os.path.dirname(sys.executable), "trainprobe")
            ours, ours_cpu, mb = timed([tool, "explain", str(folder), "--quiet", "--json", str(report)])
            blamed = [suspect["ranks"] for suspect in json.loads(report.read_text())["suspects"]]
            line = f"{dumps} dumps: bare {bare:.2f} s (CPU {bare_cpu:.2f}), explain {ours:.2f} s (CPU {ours_cpu:.2f}), ratio {ours / bare:.1f}, {mb:.0f} MB, blames {blamed}"
            analyzer = shutil.which("torchfrtrace", path=os.path.dirname(sys.executable))
            if analyzer:
                line += f"; torchfrtrace {timed([analyzer, str(folder), '-p', 'nccl_trace_rank_'])[0]:.2f} s"
            print(line, flush=True)
            each.append(ours_cpu / dumps)
            if [CULPRIT] not in blamed:
                failures.append(f"{dumps} dumps: rank {CULPRIT} is not blamed")
            if ours_cpu > MOST_RATIO * bare_cpu or mb > MOST_MB:
                failures.append(f"{dumps} dumps: more than {MOST_RATIO:g} times the CPU time of bare unpickling, or more than {MOST_MB} MB")
    if each[-1] > MOST_GROWTH * each[0]:
        failures.append("the time for each dump grows with their number")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
