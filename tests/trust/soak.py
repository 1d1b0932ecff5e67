"""`attach --watch 1` beside a small job for half an hour: whether memory, descriptors and the case
grow with the looks.

python -m tests.trust.soak [--minutes 30] [--settled 0.1]
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import python_path
from tests.trust.kills import surroundings

EACH_S = 5.0
BLOCKS = 10
T_95 = 2.306  # two-sided, for as many blocks less two


def sample(pid: int, place: Path) -> dict[str, float]:
    status = Path(f"/proc/{pid}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return {
        "resident MiB": int(resident.split()[1]) / 1024,
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        "case KiB": sum(path.stat().st_size for path in (place / "case").rglob("*")) / 1024,
        "files in TMPDIR": len(os.listdir(place / "tmp")),
    }


def slope(minutes: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Return the growth each minute and the half of its 95 % interval, from the means of blocks:
    neighbouring samples are alike, and would make the interval too small.
    """
    size = len(values) // BLOCKS
    at = [statistics.fmean(minutes[size * block :][:size]) for block in range(BLOCKS)]
    of = [statistics.fmean(values[size * block :][:size]) for block in range(BLOCKS)]
    line = statistics.linear_regression(at, of)
    left = [
        value - line.intercept - line.slope * minute for minute, value in zip(at, of, strict=True)
    ]
    spread = sum((minute - statistics.fmean(at)) ** 2 for minute in at)
    error = (sum(each * each for each in left) / (BLOCKS - 2) / spread) ** 0.5
    return line.slope, T_95 * error


def soak(minutes: float) -> tuple[list[float], list[dict[str, float]], str]:
    with surroundings("attach") as (place, job):
        assert job is not None
        words = ["attach", str(job.ranks[1].pid), "--watch", "1", "--case", "case"]
        with (place / "said").open("wb") as said:
            tool = subprocess.Popen(
                [sys.executable, "-m", "trainprobe", *words],
                cwd=place,
                env={**os.environ, **python_path(), "TMPDIR": str(place / "tmp")},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        began = time.monotonic()
        at, samples = [], []
        while tool.poll() is None and time.monotonic() - began < minutes * 60:
            time.sleep(EACH_S)
            if tool.poll() is None:
                at.append((time.monotonic() - began) / 60)
                samples.append(sample(tool.pid, place))
        if tool.poll() is not None:
            print("\n".join((place / "said").read_text("utf-8", "replace").splitlines()[-30:]))
            raise SystemExit(f"the tool ended after {at[-1]:.1f} minutes with {tool.returncode}")
        harm = job.harm()
        tool.send_signal(signal.SIGINT)
        code = tool.wait(60)
        lines = (place / "said").read_text("utf-8", "replace").splitlines()
    return at, samples, f"exit {code}, {len(lines)} lines said, job: {harm or 'unharmed'}"


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--minutes", type=float, default=30.0)
    asked.add_argument("--settled", type=float, default=0.1, help="this share is no growth yet")
    options = asked.parse_args()
    # A shell starts what it puts into the background with Ctrl-C ignored, and the tool would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    at, samples, end = soak(options.minutes)
    print(f"{len(samples)} samples over {at[-1]:.1f} minutes; {end}")
    for name in ("resident MiB", "case KiB"):
        minutes = dict(zip(map(int, at), samples, strict=True))  # the last of each
        print(f"{name} by minute:", *(f"{each[name]:.1f}" for each in minutes.values()))
    settled = int(len(at) * options.settled)  # what is loaded at first is no growth
    for name in samples[0]:
        values = [each[name] for each in samples]
        grows, half = slope(at[settled:], values[settled:])
        print(
            f"{name}: {values[settled]:.1f} then, {values[-1]:.1f} at last, most {max(values):.1f};"
            f" {grows:+.4f} ± {half:.4f} a minute"
        )


if __name__ == "__main__":
    main()
