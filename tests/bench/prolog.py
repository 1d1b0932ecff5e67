"""What one `trainprobe ready --slot prolog` reads, and what five hundred at once would ask of a
shared file system.

    python tests/bench/prolog.py [--runs N]

Each way of having the tool on a node runs under strace (needed: strace) and N times without it.
Counted are, over all processes that it starts: look-ups that a file server may see (opens, stats,
listings, also of what is not there), the files that are opened, each once, and their size: what a
node fetches whose cache is cold. Apart by where they lie: the tool's own files, Python's, and the
system's. What lies on the node's own disk costs a shared file system nothing. Prints one table in
Markdown; docs/sites.md has it.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROLOGS = 500
LOOKS = r"open|openat|openat2|stat|newfstatat|lstat|statx|access|faccessat|faccessat2|readlink|readlinkat|getdents64|execve"
CALLS = LOOKS.replace("|", ",")
CALL = re.compile(r"(?:\[pid +\d+\] |\d+ +)?(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+)")
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
DESCRIPTOR = re.compile(r"^(?:\d+|AT_FDCWD)<([^>]*)>")
PLACES = ("tool", "Python", "system")


@dataclass
class Read:
    """What was read in one place."""

    looked: int = 0
    sizes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Cost:
    """One way: what it read by place, and the medians of wall clock and CPU in seconds, of all
    processes together.
    """

    name: str
    reads: Mapping[str, Read]
    wall_s: float
    cpu_s: float


def place_of(path: str, tool: Sequence[str]) -> str | None:
    if path.startswith(tuple(tool)):
        return "tool"
    if path.startswith((sys.prefix, sys.base_prefix, sysconfig.get_paths()["stdlib"])):
        return "Python"
    own = tempfile.gettempdir()  # a node's own disk: there the bundle unpacks itself
    return (
        None
        if path.startswith(
            (own, "/proc", "/sys", "/dev", "/run", "/memfd", "pipe:", "socket:", "anon_inode")
        )
        else "system"
    )


def traced(argv: Sequence[str], tool: Sequence[str], folder: Path) -> dict[str, Read]:
    """Run it under strace, all its children too, and count."""
    log = folder / "strace"
    strace = ["strace", "-f", "-y", "-s", "4096", "-e", f"trace={CALLS}", "-o", str(log), *argv]
    subprocess.run(
        strace, env={}, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=180
    )
    reads = {place: Read() for place in PLACES}
    for line in log.read_text(errors="replace").splitlines():
        found = CALL.match(line)
        if found is None:
            continue
        call, words, result = found.groups()
        named, quoted = DESCRIPTOR.match(words), QUOTED.search(words)
        path = quoted.group(1) if quoted else ""
        if not path.startswith("/"):
            path = f"{named.group(1)}/{path}".rstrip("/") if named else ""
        place = place_of(path, tool) if path else None
        if place is not None:
            reads[place].looked += 1
            if (
                call.startswith(("open", "execve"))
                and not result.startswith("-")
                and os.path.isfile(path)
            ):
                reads[place].sizes[os.path.realpath(path)] = os.path.getsize(path)
    return reads


def timed(argv: Sequence[str], runs: int) -> tuple[float, float]:
    """The medians of wall clock and CPU."""
    rows = []
    for _ in range(runs):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(
            argv, env={}, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=180
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        rows.append(
            (
                time.monotonic() - began,
                after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            )
        )
    walls, cpus = sorted(row[0] for row in rows), sorted(row[1] for row in rows)
    return walls[len(walls) // 2], cpus[len(cpus) // 2]


def ways(folder: Path) -> list[tuple[str, list[str], list[str]]]:
    """(name, command, folders that hold the tool) of each way to have it."""
    installed = folder / "installed"
    shutil.copytree(
        ROOT / "trainprobe",
        installed / "trainprobe",
        ignore=shutil.ignore_patterns("__pycache__", "_probes"),
    )
    shutil.copytree(
        ROOT / "probes",
        installed / "trainprobe" / "_probes",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    start = (
        f"import sys; sys.path.insert(0, {str(installed)!r}); from trainprobe.cli import run;"
        " sys.exit(run(sys.argv[1:]))"
    )
    words = ["ready", "--slot", "prolog", "--quiet"]
    plain = [sys.executable, "-c", start, *words]
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(installed)], check=True)
    bundle = folder / "trainprobe.pyz"
    subprocess.run(
        [sys.executable, "-m", "trainprobe", "bundle-tool", "-o", str(bundle)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    whole = [
        sys.executable,
        "-c",
        start,
        "ready",
        "--no-slurm",
        "--quiet",
        "--case",
        str(folder / "case"),
    ]
    return [
        ("installed, `ready --slot prolog`", plain, [str(installed)]),
        (
            "`trainprobe.pyz ready --slot prolog`",
            [sys.executable, str(bundle), *words],
            [str(bundle)],
        ),
        ("installed, the whole `ready`", whole, [str(installed)]),
    ]


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    given.add_argument("--runs", type=int, default=5)
    runs = given.parse_args().runs
    if shutil.which("strace") is None:
        sys.stderr.write("strace is not installed.\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="bench-") as made:
        folder = Path(made)
        costs = []
        for name, argv, tool in ways(folder):
            subprocess.run(
                argv,
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=180,
            )  # warm
            costs.append(Cost(name, traced(argv, tool, folder), *timed(argv, runs)))
    print(table(costs))
    return 0


def table(costs: Sequence[Cost]) -> str:
    rows = [
        "| way | where | files | MB | look-ups | of 500 at once: GB | look-ups | wall | CPU |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for cost in costs:
        for place in PLACES:
            one = cost.reads[place]
            size = sum(one.sizes.values())
            spent = f"{cost.wall_s:.2f} s | {cost.cpu_s:.2f} s" if place == PLACES[0] else " | "
            name = cost.name if place == PLACES[0] else ""
            many = f"{size * PROLOGS / 1e9:.2f} | {one.looked * PROLOGS:,}"
            rows.append(
                f"| {name} | {place} | {len(one.sizes)} | {size / 1e6:.2f} | {one.looked} | {many}"
                f" | {spent} |"
            )
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
