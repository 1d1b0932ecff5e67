"""Loads in child processes: start them, watch their memory, end them, and say how each went."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any, Callable, Dict, List

from _shared.child_processes import PythonChild, rank_variables, signal_name
from _shared.child_program import write
from _shared.proc import bytes_in

CHILD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "load_child.py")
SAMPLE_S = 0.02
PSS_S = 0.25  # adding up the PSS of a large process takes time, and its memory lock


class Attempt(PythonChild):
    """One process that loads `source` by `way`. `peaks` are the highest samples of its memory."""

    def __init__(
        self, folder: str, source: str, way: str, rank: int = 0, ranks: int = 1, port: int = 0
    ) -> None:
        self.way, self.rank, self.ranks = way, rank, ranks
        self.peaks = {"VmRSS": 0, "RssAnon": 0, "RssFile": 0}
        key, together = f"{way}{rank}", "together" if ranks > 1 else "alone"
        argv = [CHILD, folder, key, way.partition("-")[0], source, together]
        super().__init__(folder, key, argv, rank_variables(rank, ranks, port))

    def sample(self) -> int:
        """Look once at its memory; return the bytes that belong to no file."""
        now = bytes_in(f"/proc/{self.pid}/status")
        for name, peak in self.peaks.items():
            self.peaks[name] = max(peak, now.get(name, 0))
        return now.get("RssAnon", 0)

    def pss(self) -> int:
        return bytes_in(f"/proc/{self.pid}/smaps_rollup").get("Pss", 0)

    def result(self) -> Dict[str, Any]:
        """The outcome; call `end` first. `private_bytes` is the most that it could not share."""
        ending = self.ending()
        out: Dict[str, Any] = {
            "way": self.way,
            "rank": self.rank,
            "ranks": self.ranks,
            "pid": self.pid,
        }
        if os.path.exists(self.path("json")):
            out.update(json.loads(self.text("json")))
            if ending.how == "oom_killed":  # it had loaded, and waited for the other ranks
                out.update(outcome=ending.how, oom_rise=ending.oom_rise, signal="SIGKILL")
        else:
            out.update(
                outcome=ending.how,
                oom_rise=ending.oom_rise,
                step=self.text("now"),
                frames=self.frames(),
                exit_code=ending.exit_code,
                signal=signal_name(ending.signal or 0),
                message=self.text("out")[-2000:],
            )
        # VmHWM may be above the highest sample: what it is above counts as private.
        out["peak_bytes"] = max(out.get("peak_bytes", 0), self.peaks["VmRSS"])
        rss, anon = max(
            (self.peaks["VmRSS"], self.peaks["RssAnon"]),
            (out.get("rss_bytes", 0), out.get("anon_bytes", 0)),
        )
        out["private_bytes"] = max(
            anon + max(0, out["peak_bytes"] - rss), self.peaks["RssAnon"], out.get("anon_bytes", 0)
        )
        out["shared_bytes"] = max(out.get("file_bytes", 0), self.peaks["RssFile"])
        return out


class Loads:
    """The attempts of one load and their highest totals: `most_pss` and `most_private`, bytes."""

    def __init__(self, attempts: List[Attempt], until: float) -> None:
        self.attempts, self.until = attempts, until
        self.most_pss = self.most_private = 0
        self._pss_at = 0.0

    def watch(self, attempts: List[Attempt], enough: Callable[[Attempt], bool]) -> None:
        """Sample all until `enough(attempt)` holds for each of `attempts` or the time is up."""
        while time.monotonic() < self.until and not all(map(enough, attempts)):
            self.most_private = max(self.most_private, sum(item.sample() for item in self.attempts))
            if time.monotonic() - self._pss_at > PSS_S:
                self._pss_at = time.monotonic()
                self.add_pss()
            time.sleep(SAMPLE_S if len(self.attempts) > 1 else SAMPLE_S / 4)

    def add_pss(self) -> None:
        self.most_pss = max(self.most_pss, sum(item.pss() for item in self.attempts))


def load(
    folder: str, source: str, way: str, ranks: int, timeout_s: float, *, in_turn: bool = False
) -> Loads:
    """Load in `ranks` processes, at once or in turn; return when all answered or time is up."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.makedirs(folder)
    attempts = [Attempt(folder, source, way, rank, ranks, port) for rank in range(ranks)]
    loads = Loads(attempts, time.monotonic() + timeout_s)
    if ranks > 1:
        loads.watch(attempts, Attempt.ready)
    for item in attempts if in_turn else ():
        write(item.path("go"))
        loads.watch([item], Attempt.answered)
    write(f"{folder}/go")
    loads.watch(attempts, Attempt.answered)
    loads.add_pss()
    write(f"{folder}/done")
    for item in attempts:
        item.end(abort_s=3.0)
    return loads
