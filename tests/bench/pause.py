"""How long a process stands still while it is looked at: `python tests/bench/pause.py [RUNS]`.

A meter reads the clock in a tight loop with short rests, at real-time priority where that is
allowed so that it meets nobody but the tracer, and keeps its largest gap. It is looked at in each
way that attach has. Printed: median and maximum of the largest gap of each run, in ms.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from trainprobe.collect import (  # noqa: E402 - run as a file, it finds the tool by the path above
    own_thread,
    processes,
    pyspy,
    stacks,
)
from trainprobe.collect.members import Member  # noqa: E402

METER = """
import mmap, os, sys, threading, time
clock = time.perf_counter_ns
idle = threading.Event()
threading.Thread(target=idle.wait, daemon=True).start()
file = open(sys.argv[1], "r+b")
page = mmap.mmap(file.fileno(), 4096)
while True:
    largest, began = 0, page[0]
    while page[0] == began:
        last = clock()
        ends = last + 8_000_000
        while last < ends:
            now = clock()
            if now - last > largest:
                largest = now - last
            last = now
        time.sleep(0.001)  # the kernel takes 5 % of each second from whoever runs at real-time priority
        largest = max(largest, clock() - last - 1_000_000)
    page[8:16] = largest.to_bytes(8, "little")
    page[1] = page[0]
"""


class Meter:
    """A process with a thread that never rests and one that sleeps."""

    def __init__(self) -> None:
        fd, self.path = tempfile.mkstemp(prefix="meter-")
        os.write(fd, bytes(4096))
        os.close(fd)
        self.process = subprocess.Popen([sys.executable, "-c", METER, self.path])
        time.sleep(0.5)
        self.real_time = False
        with contextlib.suppress(OSError):
            for tid in os.listdir(f"/proc/{self.process.pid}/task"):
                os.sched_setscheduler(int(tid), os.SCHED_FIFO, os.sched_param(1))
            self.real_time = True

    def largest_ms(self, look: Callable[[int], object]) -> float:
        """Return the largest gap while `look` looks at the meter."""
        self._turn()
        look(self.process.pid)
        return self._turn()

    def _turn(self) -> float:
        with open(self.path, "r+b") as file:
            number = (file.read(1)[0] + 1) % 256
            file.seek(0)
            file.write(bytes([number]))
            file.flush()
            while os.pread(file.fileno(), 1, 1)[0] != number:
                time.sleep(0.001)
            return int.from_bytes(os.pread(file.fileno(), 8, 8), "little") / 1e6

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.unlink(self.path)


def _py_spy(*options: str) -> Callable[[int], object]:
    path, reason = pyspy.find()
    if path is None:
        raise SystemExit(reason)
    return lambda pid: stacks.dump(path, pid, 20.0, options)


WAYS: dict[str, Callable[[int], object]] = {
    "nothing, for 0.3 s": lambda _: time.sleep(0.3),
    "/proc": lambda pid: processes.read_process(Member(0, pid), 1),
    "py-spy": _py_spy(),
    "py-spy --nonblocking": _py_spy("--nonblocking"),
    "--deep (own thread)": lambda pid: own_thread.start(pid, b"pass\n"),
    "py-spy --native": _py_spy("--native"),
}


def measure(way: str, runs: int) -> list[float]:
    """Return the largest gap, in ms, of each of `runs` looks."""
    meter = Meter()
    try:
        return [meter.largest_ms(WAYS[way]) for _ in range(runs)]
    finally:
        meter.close()


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    print(
        f"load {os.getloadavg()[0]:.1f}, {len(os.sched_getaffinity(0))} CPUs, {runs} runs each;"
        " largest gap in ms"
    )
    for way in WAYS:
        found = measure(way, runs)
        print(
            f"{way:24}  median {statistics.median(found):8.2f}   95 %"
            f" {sorted(found)[int(0.95 * len(found))]:8.2f}   max {max(found):8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
