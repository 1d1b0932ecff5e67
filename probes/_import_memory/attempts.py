"""Imports in child processes: start and watch them, end them, and describe the outcome."""

from __future__ import annotations

import json
import os
import re
import time
from typing import Any, Dict, List, Optional

from _shared.child_processes import PythonChild
from _shared.child_program import write
from _shared.proc import bytes_in, descendants, read_text

CHILD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "import_child.py")
# Builders and compilers, as torch's cpp_extension, Triton, Cython, setuptools and cmake start them,
# without version and prefix.
COMPILERS = frozenset(
    "ninja make cmake nvcc cicc ptxas cudafe++ fatbinary hipcc c++ g++ gcc cc clang clang++ cc1"  # noqa: SIM905
    " cc1plus ld lld as collect2 icpx icx tcc".split()
)
SAMPLE_S = 0.05


class Attempt(PythonChild):
    """One child that imports `modules`. `how` is alone (one module), whole (all modules in one
    process) or together (rank `rank` of several).
    """

    def __init__(
        self,
        folder: str,
        modules: List[str],
        first: str,
        how: str = "alone",
        rank: Optional[int] = None,
        guarded: Optional[Dict[str, int]] = None,
    ) -> None:
        self.modules, self.how, self.rank = modules, how, rank
        self.guarded = {name: slots for name, slots in (guarded or {}).items() if name in modules}
        self.compilers = self.build_bytes = self.anon_bytes = 0
        key = how if rank is None else f"rank{rank}"
        slots = ",".join(f"{name}={count}" for name, count in self.guarded.items())
        together = "alone" if rank is None else "together"
        variables: Dict[str, object] = {} if rank is None else {"RANK": rank, "LOCAL_RANK": rank}
        variables["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")  # as torchrun does
        super().__init__(
            folder, key, [CHILD, folder, key, first, ",".join(modules), together, slots], variables
        )

    def result(self) -> Dict[str, Any]:
        """How it went, as the fields of its event; call `end` first."""
        ending = self.ending()
        out: Dict[str, Any] = {"cgroup_oom_rise": ending.oom_rise}
        if os.path.exists(self.path("json")):
            out.update(json.loads(self.text("json")))
            if ending.how == "oom_killed":  # it had imported, and waited for the other ranks
                out.update(outcome=ending.how, signal=ending.signal)
        else:
            lock = self.text("lock")
            out.update(
                outcome="crashed" if ending.how == "died" else ending.how,
                exit_code=ending.exit_code,
                signal=ending.signal,
                module=self.text("now") or self.modules[0],
                frames=self.frames(),
                error=self.text("out")[-2000:],
                lock_paths=[lock] if lock else [],
            )
        if out["outcome"] == "passed":
            out["module"] = ",".join(self.modules)
        last = (out.get("frames") or [None])[-1]
        return {
            "how": self.how,
            "rank": self.rank,
            "pid": self.pid,
            "last_frame": f"{last['file']}:{last['line']} in {last['function']}" if last else "",
            "compilers": self.compilers,
            "build_bytes": self.build_bytes,
            "guarded": sorted(self.guarded),
            **out,
            # The child reads its peak after each module; a sample may have caught a higher one.
            "private_bytes": max(out.get("private_bytes") or 0, self.anon_bytes),
        }

    def sample(self) -> Dict[str, int]:
        """Return the memory of the child and its descendants: `rss` and `pss`, in bytes."""
        total = {"rss": 0, "pss": 0}
        compilers = build = 0
        anonymous = bytes_in(f"/proc/{self.pid}/status").get("RssAnon", 0)
        self.anon_bytes = max(self.anon_bytes, anonymous)
        for pid in [self.pid, *descendants(self.pid)]:
            sizes = bytes_in(f"/proc/{pid}/smaps_rollup")
            total["rss"] += sizes.get("Rss", 0)
            total["pss"] += sizes.get("Pss", 0)
            if pid != self.pid and is_compiler(read_text(f"/proc/{pid}/comm").strip()):
                compilers, build = compilers + 1, build + sizes.get("Rss", 0)
        self.compilers = max(self.compilers, compilers)
        self.build_bytes = max(self.build_bytes, build)
        return total


def run(attempts: List[Attempt], deadline_s: float) -> Dict[str, int]:
    """Run the children until all have answered or time is up; return their highest total bytes."""
    folder, until = attempts[0].folder, time.monotonic() + deadline_s
    together = attempts[0].rank is not None
    most = {"rss": 0, "pss": 0}

    def sample() -> None:
        nonlocal most
        rows = [item.sample() for item in attempts]
        now = {kind: sum(row[kind] for row in rows) for kind in most}
        most = max(most, now, key=lambda sizes: sizes["pss"])

    while together and time.monotonic() < until and not all(item.ready() for item in attempts):
        time.sleep(0.005)
    write(f"{folder}/go")
    sampled = 0.0
    while time.monotonic() < until and not all(item.answered() for item in attempts):
        time.sleep(0.005)
        if time.monotonic() - sampled >= SAMPLE_S:
            sample()
            sampled = time.monotonic()
    if together:
        sample()
    write(f"{folder}/done")
    for item in attempts:
        item.end()
    return most


def is_compiler(name: str) -> bool:
    """`x86_64-linux-gnu-g++-12` → g++ → yes."""
    plain = re.sub(r"-?[\d.]+$", "", name)
    return plain in COMPILERS or plain.rpartition("-")[2] in COMPILERS
