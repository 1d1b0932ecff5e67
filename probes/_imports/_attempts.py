"""Imports as their parent sees them: it starts them, watches their memory and the programs below them, ends them, and says what became of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional, Set

from _memory import memory_limits, read

HERE = os.path.dirname(os.path.realpath(__file__))
CHILD = os.path.join(HERE, "_child.py")
# Builders and compilers, as torch's cpp_extension, Triton, Cython, setuptools and cmake start them. Versions and prefixes are cut off before the look-up.
COMPILERS = frozenset(
    "ninja make cmake nvcc cicc ptxas cudafe++ fatbinary hipcc c++ g++ gcc cc clang clang++ cc1 cc1plus ld lld as collect2 icpx icx tcc".split()  # noqa: SIM905
)
SAMPLE_S = 0.05


class Attempt:
    """One child that imports `modules`. `how` is alone (one module), whole (all modules in one process) or together (rank `rank` of several)."""

    def __init__(
        self, folder: str, modules: List[str], first: str, how: str = "alone", rank: Optional[int] = None, guarded: Optional[Dict[str, int]] = None
    ) -> None:
        self.folder, self.modules, self.how, self.rank = folder, modules, how, rank
        self.guarded = {name: slots for name, slots in (guarded or {}).items() if name in modules}
        self.key, self.by_us, self.compilers, self.build_bytes, self.anon_bytes = how if rank is None else f"rank{rank}", False, 0, 0, 0
        self.kills = memory_limits().kills
        environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}  # as torchrun does
        environment.pop("TRAINPROBE_EVENTS", None)
        if rank is not None:
            environment.update(RANK=str(rank), LOCAL_RANK=str(rank))
        with open(f"{folder}/{self.key}.out", "wb") as output:
            command = [
                sys.executable,
                CHILD,
                folder,
                self.key,
                first,
                ",".join(modules),
                "alone" if rank is None else "together",
                ",".join(f"{name}={slots}" for name, slots in self.guarded.items()),
            ]
            self.child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)

    def answered(self) -> bool:
        return self.child.poll() is not None or os.path.exists(f"{self.folder}/{self.key}.json")

    def end(self) -> None:
        """End it if it still runs: by SIGABRT, to which faulthandler answers with all stacks, then by SIGKILL."""
        for sent, wait_s in ((0, 5.0 if os.path.exists(f"{self.folder}/{self.key}.json") else 0.0), (signal.SIGABRT, 2.0), (signal.SIGKILL, 3.0)):
            if self.child.poll() is None:
                if sent:
                    self.by_us = True
                    self.child.send_signal(sent)
                try:
                    self.child.wait(wait_s)
                except subprocess.TimeoutExpired:
                    continue
        with contextlib.suppress(OSError):  # compilers that it started would go on without it
            os.killpg(self.child.pid, signal.SIGKILL)

    def told(self) -> Dict[str, Any]:
        """What became of it, as the fields of its event. It has ended before this is asked."""
        text, code = read(f"{self.folder}/{self.key}.json"), self.child.returncode
        rise = memory_limits().kills - self.kills
        killed = code == -signal.SIGKILL and rise > 0 and not self.by_us
        if text:
            out: Dict[str, Any] = {"cgroup_oom_rise": rise, **json.loads(text)}
            if killed:  # its own import was through, and it was taken while it held that memory for the others
                out.update(outcome="oom_killed", signal=-code)
        else:
            waits_for = read(f"{self.folder}/{self.key}.lock")
            out = {
                "outcome": "timed_out" if self.by_us or code is None else "oom_killed" if killed else "crashed",
                "cgroup_oom_rise": rise,
                "exit_code": code if (code or 0) >= 0 else None,
                "signal": -code if code is not None and code < 0 and not self.by_us else None,
                "module": read(f"{self.folder}/{self.key}.now") or self.modules[0],
                "frames": self.stack(),
                "error": read(f"{self.folder}/{self.key}.out")[-2000:],
                "lock_paths": [waits_for] if waits_for else [],
            }
        frames = out.get("frames") or [{}]
        if out["outcome"] == "passed":
            out["module"] = ",".join(self.modules)
        where = f"{frames[-1].get('file')}:{frames[-1].get('line')} in {frames[-1].get('function')}" if frames[-1] else ""
        # The peak as the child knows it after each module, or as it was seen between two.
        private = max(out.get("private_bytes") or 0, self.anon_bytes)
        seen = {"compilers": self.compilers, "build_bytes": self.build_bytes, "guarded": sorted(self.guarded)}
        return {"how": self.how, "rank": self.rank, "pid": self.child.pid, "last_frame": where, **seen, **out, "private_bytes": private}

    def stack(self) -> List[Dict[str, Any]]:
        """The frames of the main thread out of faulthandler's text, outermost first and without our own."""
        for block in re.split(r"\n\n|(?=Thread 0x|Current thread 0x)", read(f"{self.folder}/{self.key}.stack")):
            found = re.findall(r'File "(.*)", line (\d+) in (.*)', block)
            if found and found[-1][0] == CHILD:
                own = [one for one in reversed(found) if os.path.dirname(one[0]) != HERE and not one[0].startswith("<frozen importlib")]
                return [{"file": file, "line": int(line), "function": name} for file, line, name in own]
        return []


def run(attempts: List[Attempt], deadline_s: float) -> Dict[str, int]:
    """Let the children import until all have answered or the time is up, end them, and return the most that they held together, in bytes."""
    folder, until, together = attempts[0].folder, time.monotonic() + deadline_s, attempts[0].rank is not None
    most = {"rss": 0, "pss": 0}
    while together and time.monotonic() < until and not all(os.path.exists(f"{folder}/{one.key}.ready") or one.child.poll() is not None for one in attempts):
        time.sleep(0.005)
    open(f"{folder}/go", "w").close()
    looked = 0.0
    while time.monotonic() < until and not all(one.answered() for one in attempts):
        time.sleep(0.005)
        if time.monotonic() - looked >= SAMPLE_S:
            most = max(most, _held(attempts), key=lambda one: one["pss"])
            looked = time.monotonic()
    if together:
        most = max(most, _held(attempts), key=lambda one: one["pss"])
    open(f"{folder}/done", "w").close()
    for one in attempts:
        one.end()
    return most


def _held(attempts: List[Attempt]) -> Dict[str, int]:
    """Sum what the children and all below them hold now; PSS counts a shared page once over all of them. Also counts the compilers below each."""
    total, parents = {"rss": 0, "pss": 0}, {}  # type: Dict[str, int], Dict[int, int]
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = read(f"/proc/{name}/stat").rpartition(")")[2].split()
            parents[int(name)] = int(fields[1]) if len(fields) > 1 else 0
    for attempt in attempts:
        family: Set[int] = {attempt.child.pid}
        for _ in range(8):  # as deep as torchrun, ninja, nvcc and cc1plus are nested
            family |= {pid for pid, parent in parents.items() if parent in family}
        anonymous = re.search(r"^RssAnon:\s+(\d+)", read(f"/proc/{attempt.child.pid}/status"), re.MULTILINE)
        attempt.anon_bytes = max(attempt.anon_bytes, int(anonymous.group(1)) * 1024 if anonymous else 0)
        compilers = build = 0
        for pid in family:
            sizes = {kind.lower(): int(number) * 1024 for kind, number in re.findall(r"^(Rss|Pss): +(\d+)", read(f"/proc/{pid}/smaps_rollup"), re.MULTILINE)}
            for kind, number in sizes.items():
                total[kind] += number
            if pid != attempt.child.pid and is_compiler(read(f"/proc/{pid}/comm").strip()):
                compilers, build = compilers + 1, build + sizes.get("rss", 0)
        attempt.compilers, attempt.build_bytes = max(attempt.compilers, compilers), max(attempt.build_bytes, build)
    return total


def is_compiler(name: str) -> bool:
    """`x86_64-linux-gnu-g++-12` → g++ → yes."""
    plain = re.sub(r"-?[\d.]+$", "", name)
    return plain in COMPILERS or plain.rpartition("-")[2] in COMPILERS
