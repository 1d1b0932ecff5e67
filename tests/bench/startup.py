"""Start-up time: `trainprobe --help` against `python -c "import typer"`, run in turns; fails over
the limit.

python tests/bench/startup.py [--rounds 15]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 1.6  # times the wall time of importing typer alone
ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "import typer": [sys.executable, "-c", "import typer"],
    "trainprobe --help": [sys.executable, "-m", "trainprobe", "--help"],
}


def wall_s(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return time.perf_counter() - began


def measure(rounds: int) -> dict[str, list[float]]:
    """Wall times in seconds, the commands in turns, so that a busy moment of the machine meets
    both; the first round is thrown away.
    """
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for turn in range(rounds + 1):
        for name, command in COMMANDS.items():
            took_s = wall_s(command)
            if turn:
                times[name].append(took_s)
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description="Start-up time against `import typer`.")
    parser.add_argument("--rounds", type=int, default=15)
    times = measure(parser.parse_args().rounds)
    typer_s, help_s = (statistics.median(times[name]) for name in COMMANDS)
    for name, some in times.items():
        print(
            f"{name:<20} median {statistics.median(some) * 1000:7.1f} ms   best"
            f" {min(some) * 1000:7.1f} ms"
        )
    print(f"{'ratio of medians':<20} {help_s / typer_s:.2f} (limit {LIMIT})")
    return 0 if help_s <= LIMIT * typer_s else 1


if __name__ == "__main__":
    sys.exit(main())
