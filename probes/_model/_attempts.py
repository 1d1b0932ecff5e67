"""Loads as their parent sees them: it starts them, watches their memory, ends them, and says what became of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional

from _memory import memory_limits, read

LOAD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "_load.py")
SAMPLE_S = 0.02


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Attempt:
    """One process that loads `source` by `way`, as rank `rank` of `ranks`. `peaks` are the most that was seen of it."""

    def __init__(self, folder: str, source: str, way: str, rank: int = 0, ranks: int = 1, port: int = 0) -> None:
        self.folder, self.way, self.rank, self.ranks, self.by_us = folder, way, rank, ranks, False
        self.key, self.kills = f"{way}{rank}", memory_limits().kills
        self.peaks = {"rss": 0, "anon": 0, "file": 0}
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_PORT": port}
        environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", **{name: str(value) for name, value in place.items()}}
        environment.setdefault("OMP_NUM_THREADS", "1")  # as torchrun does
        environment.pop("TRAINPROBE_EVENTS", None)
        with open(f"{folder}/{self.key}.out", "wb") as output:
            command = [sys.executable, LOAD, folder, self.key, way.partition("-")[0], source, "together" if ranks > 1 else "alone"]
            self.child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def answered(self) -> bool:
        return self.child.poll() is not None or os.path.exists(f"{self.folder}/{self.key}.json")

    def ready(self) -> bool:
        return self.answered() or os.path.exists(f"{self.folder}/{self.key}.ready")

    def look(self) -> None:
        """Take one sample of its memory, bytes."""
        rows = dict(re.findall(r"^(VmRSS|RssAnon|RssFile):\s+(\d+)", read(f"/proc/{self.child.pid}/status"), re.MULTILINE))
        for name, row in (("rss", "VmRSS"), ("anon", "RssAnon"), ("file", "RssFile")):
            self.peaks[name] = max(self.peaks[name], int(rows.get(row, 0)) * 1024)

    def pss(self) -> int:
        found = re.search(r"^Pss: +(\d+)", read(f"/proc/{self.child.pid}/smaps_rollup"), re.MULTILINE)
        return int(found.group(1)) * 1024 if found else 0

    def end(self) -> None:
        """End it if it still runs: by SIGABRT, to which faulthandler answers with all stacks, then by SIGKILL."""
        if self.child.poll() is None and os.path.exists(f"{self.folder}/{self.key}.json"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(5.0)
        for sent in (signal.SIGABRT, signal.SIGKILL):
            if self.child.poll() is None:
                self.by_us = True
                self.child.send_signal(sent)
                try:
                    self.child.wait(3.0)
                except subprocess.TimeoutExpired:
                    continue

    def told(self) -> Dict[str, Any]:
        """What became of it; it has ended before this is asked. `private_bytes` is the most that no other process could share with it."""
        text, code = read(f"{self.folder}/{self.key}.json"), self.child.returncode
        rise = memory_limits().kills - self.kills
        killed = code == -signal.SIGKILL and rise > 0 and not self.by_us
        out: Dict[str, Any] = {"way": self.way, "rank": self.rank, "ranks": self.ranks, "pid": self.child.pid}
        if text:
            out.update(json.loads(text))
            if killed:  # it had loaded, and was taken while it held that memory beside the others
                out.update(outcome="oom_killed", oom_rise=rise, signal="SIGKILL")
        else:
            ended = "timed_out" if self.by_us or code is None else "oom_killed" if killed else "died"
            out.update(outcome=ended, oom_rise=rise, step=read(f"{self.folder}/{self.key}.now"), frames=self.stack())
            out.update(exit_code=code if (code or 0) >= 0 else None, signal=signal_name(-code) if code is not None and code < 0 and not self.by_us else "")
            out.update(message=read(f"{self.folder}/{self.key}.out")[-2000:])
        # Between two samples it may have been more: what the highest mark of all pages is above the samples counts as its own.
        out["peak_bytes"] = max(out.get("peak_bytes", 0), self.peaks["rss"])
        seen = max((self.peaks["rss"], self.peaks["anon"]), (out.get("rss_bytes", 0), out.get("anon_bytes", 0)))
        out["private_bytes"] = max(seen[1] + max(0, out["peak_bytes"] - seen[0]), self.peaks["anon"], out.get("anon_bytes", 0))
        out["shared_bytes"] = max(out.get("file_bytes", 0), self.peaks["file"])
        return out

    def stack(self) -> List[Dict[str, Any]]:
        """The frames of the main thread out of faulthandler's text, outermost first and without ours."""
        blocks = re.split(r"\n\n|(?=Thread 0x|Current thread 0x)", read(f"{self.folder}/{self.key}.stack"))
        ours = os.path.dirname(LOAD)
        for block in reversed(blocks):
            found = re.findall(r'File "(.*)", line (\d+) in (\S+)', block)
            if any(file == LOAD for file, _, _ in found):
                rows = [{"file": file, "line": int(line), "function": name} for file, line, name in reversed(found)]
                return [row for row in rows if not str(row["file"]).startswith((ours, os.path.join(os.path.dirname(ours), "_given")))]
        return []


def load(folder: str, source: str, way: str, ranks: int, timeout_s: float, *, in_turn: bool = False) -> Loads:
    """Load in `ranks` processes, all at the same moment or one after the other; return when all have answered or the time is up."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.makedirs(folder)
    attempts = [Attempt(folder, source, way, rank, ranks, port) for rank in range(ranks)]
    loads = Loads(attempts)
    until = time.monotonic() + timeout_s
    if ranks > 1:
        loads.watch(until, Attempt.ready)
    for one in attempts if in_turn else ():
        open(f"{folder}/{one.key}.go", "w", encoding="utf-8").close()
        loads.watch(until, Attempt.answered, only=one)
    open(f"{folder}/go", "w", encoding="utf-8").close()
    loads.watch(until, Attempt.answered)
    loads.most_pss = max(loads.most_pss, sum(one.pss() for one in attempts))
    open(f"{folder}/done", "w", encoding="utf-8").close()
    for one in attempts:
        one.end()
    return loads


class Loads:
    """The attempts of one load, and the most that they held together: `most_pss` and `most_private`, bytes."""

    def __init__(self, attempts: List[Attempt]) -> None:
        self.attempts, self.most_pss, self.most_private, self._looked_at = attempts, 0, 0, 0.0

    def watch(self, until: float, enough: Any, only: Optional[Attempt] = None) -> None:
        """Sample until `enough(attempt)` holds for all (or for `only`) or the clock passes `until`."""
        while time.monotonic() < until and not all(enough(one) for one in ([only] if only is not None else self.attempts)):
            private = 0
            for one in self.attempts:
                one.look()
                found = re.search(r"^RssAnon:\s+(\d+)", read(f"/proc/{one.child.pid}/status"), re.MULTILINE)
                private += int(found.group(1)) * 1024 if found else 0
            self.most_private = max(self.most_private, private)
            if time.monotonic() - self._looked_at > 0.25:  # walking the pages of a large process takes its time, and its lock
                self._looked_at = time.monotonic()
                self.most_pss = max(self.most_pss, sum(one.pss() for one in self.attempts))
            time.sleep(SAMPLE_S if len(self.attempts) > 1 else SAMPLE_S / 4)
