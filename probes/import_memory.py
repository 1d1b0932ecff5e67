# /// trainprobe
# rung: 30
# question: Does each import work alone, and do all ranks' imports fit in memory together?
# scope: host
# needs: [imports]
# timeout_s: 150
# climbs: []
# after: [environment]
# means: An import raises, hangs or crashes by itself, or fits once but not once for every rank of this host.
# ///
"""Import each module alone in a fresh process, then everything in as many processes as there are ranks, all at the same moment.

Environment: TRAINPROBE_IMPORTS (names, by commas; default torch), TRAINPROBE_NPROC, TRAINPROBE_SCRIPT (its folder comes first on the path),
TRAINPROBE_IMPORT_TIMEOUT_S (for one import, 30). Flags: --imports, --nproc, --script, --timeout-s.
Events: `note`/`fail` name=import: module, how (alone|together), outcome (passed|failed|timed_out|crashed|oom_killed|not_measured), took_s, rss_bytes,
growth_bytes, threads, fds, touched_cuda, error_type, error, last_frame, frames (outermost first), rank, pid, signal, exit_code, cgroup_oom_rise.
A passed `together` names all modules, by commas; any other names the module at which it ended.
The children volunteer for the OOM killer (oom_score_adj), so that it takes one of them and not this probe.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List, Optional

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit

# Runs in the target's interpreter. FOLDER/<key>.now holds the module under way, .json what came out, .stack faulthandler's words (SIGABRT asks for them).
CHILD = r"""
import faulthandler, json, os, sys, time
folder, key, first, modules, together = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4].split(","), sys.argv[5] == "together"
if first: sys.path[0] = first
with open("/proc/self/oom_score_adj", "w") as file: file.write("500")
faulthandler.enable(open(f"{folder}/{key}.stack", "w"), all_threads=True)
def look():
    status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
    links = []
    for fd in os.listdir("/proc/self/fd"):
        try: links.append(os.readlink("/proc/self/fd/" + fd))
        except OSError: pass
    cuda = any(one.startswith("/dev/nvidia") for one in links)
    return {"rss_bytes": int(status["VmRSS"].split()[0]) * 1024, "peak_bytes": int(status["VmHWM"].split()[0]) * 1024, "threads": int(status["Threads"]), "fds": len(links) - 1, "touched_cuda": cuda}
def wait_for(name):
    parent = os.getppid()
    while together and not os.path.exists(f"{folder}/{name}") and os.getppid() == parent: time.sleep(0.005)
before = look()
if together: open(f"{folder}/{key}.ready", "w").close()
wait_for("go")
began, out = time.monotonic(), {"outcome": "passed", "took_each_s": {}}
for module in modules:
    with open(f"{folder}/{key}.now", "w") as file: file.write(module)
    start = time.monotonic()
    try: __import__(module)
    except BaseException as error:
        trace, frames = error.__traceback__.tb_next, []
        while trace is not None:
            frames.append({"file": trace.tb_frame.f_code.co_filename, "line": trace.tb_lineno, "function": trace.tb_frame.f_code.co_name})
            trace = trace.tb_next
        out.update(outcome="failed", error_type=type(error).__name__, error=str(error)[:4000], frames=frames[-60:])
        break
    out["took_each_s"][module] = round(time.monotonic() - start, 4)
out.update(look(), took_s=round(time.monotonic() - began, 4), module=module)
out.update(growth_bytes=out["rss_bytes"] - before["rss_bytes"])
with open(f"{folder}/{key}.tmp", "w") as file: json.dump(out, file)
os.rename(f"{folder}/{key}.tmp", f"{folder}/{key}.json")
wait_for("done")
os._exit(0)
"""


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def memory_limit() -> Dict[str, int]:
    """Return the least memory limit up the cgroup tree (or the host's memory) and the number of OOM kills counted there, v1 and v2."""
    found = re.search(r"MemTotal:\s+(\d+)", read("/proc/meminfo"))
    limit, kills = int(found.group(1)) * 1024 if found else 0, 0
    for line in read("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if names and "memory" not in names.split(","):
            continue
        while True:
            folder = f"/sys/fs/cgroup/{names}".rstrip("/") + path.rstrip("/")
            for text in (read(f"{folder}/memory.max"), read(f"{folder}/memory.limit_in_bytes")):
                limit = min(limit, int(text)) if text.strip().isdigit() else limit
            for text in re.findall(r"^oom_kill (\d+)", read(f"{folder}/memory.events") + read(f"{folder}/memory.oom_control"), re.MULTILINE):
                kills = max(kills, int(text))
            if path in ("", "/"):
                break
            path = os.path.dirname(path)
    return {"limit_bytes": limit, "kills": kills}


class Attempt:
    """One child that imports `modules`; `rank` is None when it is alone."""

    def __init__(self, folder: str, modules: List[str], first: str, rank: Optional[int] = None) -> None:
        self.folder, self.modules, self.rank, self.key, self.by_us = folder, modules, rank, "alone" if rank is None else f"rank{rank}", False
        self.kills = memory_limit()["kills"]
        environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}  # as torchrun does
        environment.pop("TRAINPROBE_EVENTS", None)
        with open(f"{folder}/{self.key}.out", "wb") as output:
            command = [sys.executable, "-c", CHILD, folder, self.key, first, ",".join(modules), "alone" if rank is None else "together"]
            self.child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

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

    def told(self) -> Dict[str, Any]:
        """What became of it, as the fields of its event. It has ended before this is asked."""
        text, code = read(f"{self.folder}/{self.key}.json"), self.child.returncode
        rise = memory_limit()["kills"] - self.kills
        killed = code == -signal.SIGKILL and rise > 0 and not self.by_us
        if text:
            out: Dict[str, Any] = json.loads(text)
            if killed:  # its own import was through, and it was taken while it held that memory for the others
                out.update(outcome="oom_killed", cgroup_oom_rise=rise, signal=-code)
        else:
            out = {
                "outcome": "timed_out" if self.by_us or code is None else "oom_killed" if killed else "crashed",
                "cgroup_oom_rise": rise,
                "exit_code": code if (code or 0) >= 0 else None,
            }
            out.update(
                signal=-code if code is not None and code < 0 and not self.by_us else None, module=read(f"{self.folder}/{self.key}.now") or self.modules[0]
            )
            out.update(frames=self.stack(), error=read(f"{self.folder}/{self.key}.out")[-2000:])
        frames = out.get("frames") or [{}]
        if out["outcome"] == "passed":
            out["module"] = ",".join(self.modules)
        where = f"{frames[-1].get('file')}:{frames[-1].get('line')} in {frames[-1].get('function')}" if frames[-1] else ""
        return {"how": "alone" if self.rank is None else "together", "rank": self.rank, "pid": self.child.pid, "last_frame": where, **out}

    def stack(self) -> List[Dict[str, Any]]:
        """The frames of the main thread out of faulthandler's text, outermost first and without our own."""
        for block in re.split(r"\n\n|(?=Thread 0x|Current thread 0x)", read(f"{self.folder}/{self.key}.stack")):
            found = re.findall(r'File "(.*)", line (\d+) in (.*)', block)
            if found and found[-1][0] == "<string>":
                return [
                    {"file": file, "line": int(line), "function": name} for file, line, name in reversed(found[:-1]) if not file.startswith("<frozen importlib")
                ]
        return []


def held_bytes(attempts: List[Attempt]) -> Dict[str, int]:
    """Sum what the children hold now; PSS counts a shared page once over all of them."""
    total = {"rss": 0, "pss": 0}
    for attempt in attempts:
        for kind, kilobytes in re.findall(r"^(Rss|Pss): +(\d+)", read(f"/proc/{attempt.child.pid}/smaps_rollup"), re.MULTILINE):
            total[kind.lower()] += int(kilobytes) * 1024
    return total


def run(attempts: List[Attempt], folder: str, deadline_s: float) -> Dict[str, int]:
    """Let the children import until all have answered or the time is up, end them, and return the most that they held together."""
    until, most, together = time.monotonic() + deadline_s, {"rss": 0, "pss": 0}, attempts[0].rank is not None
    while together and time.monotonic() < until and not all(os.path.exists(f"{folder}/{one.key}.ready") or one.child.poll() is not None for one in attempts):
        time.sleep(0.005)
    open(f"{folder}/go", "w").close()
    while time.monotonic() < until and not all(one.answered() for one in attempts):
        time.sleep(0.1 if together else 0.005)
        if together:
            now = held_bytes(attempts)
            most = max(most, now, key=lambda one: one["pss"])
    if together:
        most = max(most, held_bytes(attempts), key=lambda one: one["pss"])
    open(f"{folder}/done", "w").close()
    for one in attempts:
        one.end()
    return most


def report(told: Dict[str, Any]) -> bool:
    passed: bool = told["outcome"] == "passed"
    who = "alone" if told["rank"] is None else f"together with the others, rank {told['rank']}"
    says = f"import {told['module']} ({who}): {told['outcome']}"
    if passed:
        says += f" in {told['took_s']:.2f} s, {told['rss_bytes'] / 2**20:.0f} MiB, {told['threads']} threads, {told['fds']} descriptors{', touched CUDA' if told['touched_cuda'] else ''}"
    elif told["last_frame"]:
        says += f" at {told['last_frame']}"
    says += f": {told['error_type']}: {told['error'][:300]}" if told.get("error_type") else ""
    (_emit.note if passed else _emit.fail)(says + ".", name="import", **told)
    return passed


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    parser.add_argument("--imports", default=os.environ.get("TRAINPROBE_IMPORTS") or "torch")
    parser.add_argument("--nproc", type=int, default=_emit.number_from_environment("TRAINPROBE_NPROC", 1, 1))
    parser.add_argument("--script", default=os.environ.get("TRAINPROBE_SCRIPT", ""))
    parser.add_argument("--timeout-s", type=float, default=float(_emit.number_from_environment("TRAINPROBE_IMPORT_TIMEOUT_S", 30, 1)))
    asked = parser.parse_args()
    modules = list(dict.fromkeys(name.strip() for name in asked.imports.split(",") if name.strip()))
    if not modules or not all(re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", name) for name in modules):
        _emit.result("cannot", f"These are no module names: {asked.imports!r}.")
    first = os.path.dirname(os.path.realpath(asked.script)) if asked.script else ""
    works: List[str] = []
    failed: List[str] = []
    slowest_s = 0.0
    events = os.environ.get("TRAINPROBE_EVENTS", "")
    # Beside the events, where the ladder clears up also after a probe that it had to kill.
    scratch = tempfile.mkdtemp(prefix="trainprobe-import-", dir=os.path.dirname(events) or None)
    try:
        for place, module in enumerate(modules):
            folder = os.path.join(scratch, str(place))
            os.mkdir(folder)
            with _emit.phase(f"import:{module}"):
                attempt = Attempt(folder, [module], first)
                run([attempt], folder, asked.timeout_s)
            told = attempt.told()
            (works if report(told) else failed).append(module)
            slowest_s += told.get("took_s", 0.0)
        if asked.nproc > 1 and works:
            with _emit.phase(f"import:together:{','.join(works)}"):
                attempts = [Attempt(scratch, works, first, rank) for rank in range(asked.nproc)]
                most = run(attempts, scratch, max(asked.timeout_s, 3 * slowest_s * asked.nproc / max(1, len(os.sched_getaffinity(0)))))
            failed += [f"{one.key}: {one.told()['module']}" for one in attempts if not report(one.told())]
            limit = memory_limit()["limit_bytes"]
            for kind in ("rss", "pss"):
                _emit.measure(
                    f"imports_together_{kind}",
                    most[kind],
                    "bytes",
                    threshold=limit,
                    source="memory limit of the cgroup, or the host's memory",
                    nproc=asked.nproc,
                )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _emit.result(
        "no" if failed else "yes",
        f"Imports failed: {', '.join(failed)}." if failed else f"{len(works)} imports work, alone and in {asked.nproc} processes at once.",
    )


if __name__ == "__main__":
    main()
