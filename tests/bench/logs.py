"""Reading logs: `trainprobe explain` against `grep -c -F -f` with the same texts on the same log,
its memory, a thousand files at once, and one small log.

python tests/bench/logs.py [--size 1000000000] [--rounds 3] [--folder DIR]

Fails where reading is slower than half of grep, where it needs more than 300 MB, where 64
descriptors are not enough for 1,000 files, or where these or a small log take too much CPU time.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from trainprobe.signatures import literals

LEAST_RATIO = 0.5
MOST_MB = 300
FILES = 1000
MOST_OF_SPLITTING = 24.0  # times the CPU time of splitting all lines of those files into words
MOST_OF_TYPER = 13.0  # times the CPU time of `import typer`, for one small log
SMALL_ROUNDS = 10
ROOT = Path(__file__).resolve().parents[2]
READ = """
import resource, sys, time
{limit}
from trainprobe.logs.literal_search import signature_search
from trainprobe.logs.read_ahead import ReadAhead
from trainprobe.logs.scanning import FileScan
began = time.perf_counter()
for path in sys.argv[1:]:
    feed, scan = ReadAhead(path), FileScan(None)
    for piece in feed.read(time.monotonic() + 3600):
        scan.feed(piece)
    rows = sum(len(selection.rows()) for selection in scan.finish())
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, rows)
"""
EXPLAIN = """
import resource, sys
{limit}
from trainprobe.cli import run
code = run(["explain", *sys.argv[1:], "--quiet", "--no-color"])
print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
"""


SPLIT = """
import sys
for path in sys.argv[1:]:
    with open(path) as file:
        words = sum(len(line.split()) for line in file)
"""


def block(lines: int) -> bytes:
    """Lines of a training with eight ranks on two hosts: progress, NCCL's channels, prose."""
    draw = random.Random(4)
    words = [
        "batch",
        "gradient",
        "optimizer",
        "loader",
        "worker",
        "cache",
        "shard",
        "samples",
        "throughput",
        "tokens",
        "schedule",
        "warmup",
        "layer",
    ]
    made = []
    for number in range(lines):
        rank, kind = number % 8, draw.random()
        if kind < 0.6:
            moment = (
                "2026-11-21"
                f" 10:{number // 60000 % 60:02d}:{number // 1000 % 60:02d},{number % 1000:03d}"
            )
            made.append(
                f"[rank{rank}]: {moment} - trainer - INFO - step {number // 8}/100000"
                f" loss={draw.random() * 3:.4f} lr=1.0e-4"
            )
        elif kind < 0.9:
            host = f"node{rank // 4}:{4000 + rank}:{5000 + rank} [{rank % 4}]"
            made.append(
                f"[default{rank % 4}]:{host} NCCL INFO Channel {number % 32:02d}/32 :"
                f" {rank}[{rank % 4}] -> {(rank + 1) % 8}[{(rank + 1) % 4}]"
            )
        else:
            made.append(
                f"[rank{rank}]: " + " ".join(draw.choice(words) for _ in range(draw.randint(5, 25)))
            )
    return ("\n".join(made) + "\n").encode()


def write_log(path: Path, size: int) -> None:
    """About `size` bytes, with one error near the end."""
    part = block(200_000)
    error = (
        b'[rank3]: Traceback (most recent call last):\n[rank3]:   File "/w/train.py", line 3, in'
        b" <module>\n[rank3]:     main()\n"
    )
    error += (
        b"[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    )
    with open(path, "wb") as file:
        file.writelines(part for _ in range(max(1, size // len(part))))
        file.write(error)
        file.write(part[: 2**20])


def python(program: str, *arguments: str, limit: str = "") -> tuple[list[str], list[str]]:
    """The words of the last lines of stdout and stderr."""
    command = [sys.executable, "-c", program.format(limit=limit), *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return [*done.stdout.split("\n")[-2:-1], ""][0].split(), [*done.stderr.split("\n")[-2:-1], ""][
        0
    ].split()


def wall_s(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def cpu_s(command: list[str]) -> float:
    """User and system time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def small_log_over_typer(log: Path) -> float:
    """CPU time of explaining one small log over that of `import typer`, medians, in turns."""
    ours_s, typer_s = [], []
    for _ in range(SMALL_ROUNDS):
        ours_s.append(cpu_s([sys.executable, "-m", "trainprobe", "explain", str(log)]))
        typer_s.append(cpu_s([sys.executable, "-c", "import typer"]))
    print(f"a small log                   {statistics.median(ours_s):7.2f} s of CPU")
    return statistics.median(ours_s) / statistics.median(typer_s)


def against_grep(log: Path, texts: Path, rounds: int) -> tuple[float, float]:
    """In turns, so that a busy moment of the machine meets both. Returns the ratio of the speeds
    and the memory in MB.
    """

    def grep() -> None:
        subprocess.run(
            ["grep", "-c", "-F", "-f", str(texts), str(log)], stdout=subprocess.DEVNULL, check=False
        )

    grep_s, ours_s, memory = [], [], 0.0
    grep()  # the log is in the page cache from now on
    for _ in range(rounds):
        grep_s.append(wall_s(grep))
        (took, megabytes, _), _ = python(READ, str(log))
        ours_s.append(float(took))
        memory = max(memory, float(megabytes))
    size = log.stat().st_size / 1e6
    print(
        f"grep -c -F -f, {len(literals())} texts   {min(grep_s):7.2f} s  {size / min(grep_s):7.0f}"
        f" MB/s (best of {rounds})"
    )
    print(
        f"reading                       {min(ours_s):7.2f} s  {size / min(ours_s):7.0f} MB/s,"
        f" {memory:.0f} MB of memory"
    )
    return statistics.median(grep_s) / statistics.median(ours_s), memory


def main() -> int:
    parser = argparse.ArgumentParser(description="Reading logs against grep.")
    parser.add_argument("--size", type=int, default=1_000_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="a disk with room for twice the size")
    words = parser.parse_args()
    failures = []
    with tempfile.TemporaryDirectory(dir=words.folder) as name:
        folder = Path(name)
        log, texts = folder / "job.log", folder / "texts"
        write_log(log, words.size)
        texts.write_text("\n".join(literals()) + "\n")
        ratio, memory = against_grep(log, texts, words.rounds)
        print(f"speed over grep's             {ratio:7.2f} (at least {LEAST_RATIO})")
        failures += [f"{ratio:.2f} of grep's speed"] if ratio < LEAST_RATIO else []
        (_, *_), said = python(EXPLAIN, str(log))
        print(f"explain as a whole            {float(said[-1]):7.0f} MB of memory")
        memory = max(memory, float(said[-1]))
        packed = folder / "job.log.gz"
        with open(log, "rb") as plain, gzip.open(packed, "wb", compresslevel=1) as file:
            shutil.copyfileobj(plain, file, 2**20)
        (took, megabytes, _), _ = python(READ, str(packed))
        print(
            f"the same in gzip              {float(took):7.2f} s, {float(megabytes):.0f} MB of"
            " memory"
        )
        many = folder / "many"
        many.mkdir()
        part = block(2000)
        for rank in range(FILES):
            (many / f"rank_{rank}.log").write_bytes(part)
        began = time.perf_counter()
        _, said = python(
            EXPLAIN, str(many), limit="resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))"
        )
        print(
            f"{FILES} files, 64 descriptors    {time.perf_counter() - began:7.2f} s,"
            f" {float(said[-1]):.0f} MB of memory, exit code {said[0]}"
        )
        explained = cpu_s([sys.executable, "-m", "trainprobe", "explain", str(many), "--quiet"])
        times = explained / cpu_s([sys.executable, "-c", SPLIT, *map(str, many.iterdir())])
        print(
            f"times splitting their lines   {times:7.2f}, {explained:.1f} s of CPU (at most"
            f" {MOST_OF_SPLITTING})"
        )
        failures += [f"{times:.1f} times splitting"] if times > MOST_OF_SPLITTING else []
        small = folder / "small.log"
        small.write_bytes(block(40))
        times = small_log_over_typer(small)
        print(f"times importing typer         {times:7.2f} (at most {MOST_OF_TYPER})")
        failures += [f"{times:.1f} times importing typer"] if times > MOST_OF_TYPER else []
        memory = max(memory, float(megabytes), float(said[-1]))
        failures += [f"{memory:.0f} MB of memory"] if memory > MOST_MB else []
        failures += (
            [f"exit code {said[0]} for {FILES} files"] if said[0] not in ("0", "1", "3") else []
        )
    print("too slow or too large: " + ", ".join(failures) if failures else "within the limits")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
