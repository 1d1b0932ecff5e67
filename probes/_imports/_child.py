"""Imports modules in a fresh process and writes down how that went: _child.py FOLDER KEY FIRST MODULES TOGETHER [GUARDED].

FOLDER/KEY.now holds the module under way, .lock the lock file that it waits for, .json what came out, .stack faulthandler's words (SIGABRT asks for
them). FIRST comes first on the path. With TOGETHER=together it says .ready, waits for FOLDER/go, and stays until FOLDER/done, so that all hold their
memory at once; GUARDED (module=slots, by commas) are those that are imported under a lock, as the script does it. Runs in the target's interpreter.
"""

import contextlib
import faulthandler
import json
import os
import sys
import time
from typing import Any, Dict, Iterator

import _watch  # type: ignore[import-not-found]  # beside this file, wherever that lies

HERE = os.path.dirname(os.path.realpath(__file__))
folder, key, first, modules, together = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4].split(","), sys.argv[5] == "together"
guarded = dict(one.split("=") for one in sys.argv[6].split(",")) if together and sys.argv[6] else {}
sys.path[0] = first
sys.argv = [sys.argv[0]]  # what a module parses when it is imported is none of ours
with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
    file.write("500")
faulthandler.enable(open(f"{folder}/{key}.stack", "w"), all_threads=True)  # noqa: SIM115 - it stays open as long as we live


def look() -> Dict[str, Any]:
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file if ":" in line)
    sizes = {name: int(status[field].split()[0]) * 1024 for name, field in (("rss_bytes", "VmRSS"), ("peak_bytes", "VmHWM"), ("as_bytes", "VmPeak"))}
    shared = int(status["RssFile"].split()[0]) * 1024 if "RssFile" in status else 0
    return {**sizes, "file_bytes": shared, "threads": int(status["Threads"]), "fds": len(os.listdir("/proc/self/fd")) - 1, "touched_cuda": _watch.holds_a_gpu()}


def wait_for(name: str) -> None:
    parent = os.getppid()
    while together and not os.path.exists(f"{folder}/{name}") and os.getppid() == parent:
        _watch.sleep(0.005)


def forget_the_peak() -> None:
    """So that each module has its own: 5 resets VmHWM (proc(5), clear_refs); where it may not be written the first peak stays."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


@contextlib.contextmanager
def under_lock(slots: int) -> Iterator[None]:
    """As in the script: so many ranks at once. What is waited here is no wait of the import."""
    if not slots:
        yield
        return
    files = [open(f"{folder}/guard.{slot}", "w") for slot in range(slots)]  # noqa: SIM115 - closed below
    held = None
    while held is None:
        held = next((one for one in files if _watch.take(one)), None)
        _watch.sleep(0.0 if held is not None else 0.02)
    try:
        yield
    finally:
        for one in files:
            one.close()


before = look()
watch = _watch.Watch(f"{folder}/{key}.lock")
watch.begin()
if together:
    open(f"{folder}/{key}.ready", "w").close()
wait_for("go")
began, each, peak, private = time.monotonic(), {}, 0, 0
out: Dict[str, Any] = {"outcome": "passed"}
for module in modules:
    with open(f"{folder}/{key}.now", "w") as file:
        file.write(module)
    start = time.monotonic()
    try:
        with under_lock(int(guarded.get(module, 0))):
            forget_the_peak()
            __import__(module)
    except BaseException as error:  # whatever it is, it is what the import did
        trace, frames = error.__traceback__, []
        while trace is not None:
            code = trace.tb_frame.f_code
            if os.path.dirname(code.co_filename) != HERE:
                frames.append({"file": code.co_filename, "line": trace.tb_lineno, "function": code.co_name})
            trace = trace.tb_next
        out.update(outcome="failed", error_type=type(error).__name__, error=str(error)[:4000], frames=frames[-60:])
        break
    now = look()
    peak, private = max(peak, now["peak_bytes"]), max(private, now["peak_bytes"] - now["file_bytes"])
    each[module] = round(time.monotonic() - start, 4)
out.update(look(), took_s=round(time.monotonic() - began, 4), took_each_s=each, module=module, **watch.told())
out.update(growth_bytes=out["rss_bytes"] - before["rss_bytes"], threads_before=before["threads"])
out.update(peak_bytes=max(peak, out["peak_bytes"]), private_bytes=private)
with open(f"{folder}/{key}.tmp", "w") as file:
    json.dump(out, file)
os.rename(f"{folder}/{key}.tmp", f"{folder}/{key}.json")
wait_for("done")
os._exit(0)
