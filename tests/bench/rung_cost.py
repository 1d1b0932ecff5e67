"""What the tool costs around a finished rung: the whole call less the tool's own start and end,
against the bare program.

    python tests/bench/rung_cost.py [--rounds 5]

The tool's start and end are those of a call whose only rung does not apply on this machine. Runs
take turns, and the best of
each counts: whatever else the machine does can only add to a run.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SHARE, AT_LEAST_S = (
    0.15,
    0.3,
)  # a finished rung may cost this share of its bare run, or these seconds, whichever is more
ROOT = Path(__file__).resolve().parents[2]
RUNGS = {
    "host": (1,),
    "gloo_control": (2,),
    "train_step": (1, 2),
}  # the numbers of ranks that the rung runs its program on
EMPTY = "nccl_collectives"  # skipped at once where there is no GPU


def timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def bare(rung: str, ranks: int) -> None:
    """Run the probe's program on all ranks, as a person would by hand, with torchrun's
    variables.
    """
    port = str(free_port())
    children = []
    for rank in range(ranks):
        world = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
        }
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(ROOT / "probes" / f"{rung}.py")]
        children.append(
            subprocess.Popen(
                command,
                env={**os.environ, **world, **place},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
    for child in children:
        child.wait(timeout=120)


def through_the_tool(rung: str, ranks: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        words = [
            "--nproc",
            str(ranks),
            "--only",
            rung,
            "--python",
            sys.executable,
            "--case",
            f"{folder}/case",
            "--quiet",
        ]
        environment = {**os.environ, "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "trainprobe", "diagnose", *words]
        subprocess.run(
            command,
            check=False,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=300,
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description="The cost of a finished rung against its bare program."
    )
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    over = 0
    print(f"{'rung':<18}{'ranks':>6}{'bare':>10}{'tool':>10}{'empty':>10}{'cost':>10}{'limit':>10}")
    for rung, sizes in RUNGS.items():
        ranks = max(sizes)
        times: dict[str, list[float]] = {"bare": [], "tool": [], "empty": []}
        for _ in range(rounds):
            times["bare"].append(sum(timed(lambda: bare(rung, size)) for size in sizes))  # noqa: B023 - called at once
            times["tool"].append(timed(lambda: through_the_tool(rung, ranks)))  # noqa: B023
            times["empty"].append(timed(lambda: through_the_tool(EMPTY, ranks)))  # noqa: B023
        bare_s, tool_s, empty_s = (min(some) for some in times.values())
        cost_s, limit_s = tool_s - empty_s - bare_s, max(AT_LEAST_S, SHARE * bare_s)
        over += cost_s > limit_s
        print(
            f"{rung:<18}{ranks:>6}{bare_s:>9.2f}s{tool_s:>9.2f}s{empty_s:>9.2f}s{cost_s:>9.2f}s{limit_s:>9.2f}s{'  OVER' if cost_s > limit_s else ''}"
        )
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
