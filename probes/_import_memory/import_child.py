"""Imports modules in a fresh process and writes down how that went.

Use: python import_child.py FOLDER KEY FIRST MODULES alone|together [GUARDED]. FOLDER/KEY.now holds
the module under way, .lock the lock file that it waits for, .json the answer, .stack
faulthandler's dump. FIRST comes first on the path. With `together` it writes .ready, waits for
FOLDER/go, and stays until FOLDER/done, so that all ranks hold their memory at once; GUARDED
(module=slots,…) are the modules that the script imports under a lock. Runs in the target's
interpreter.
"""

import contextlib
import os
import sys
import time
from typing import Any, Dict, Iterator

sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
from _import_memory import import_watch  # noqa: E402
from _shared import child_program  # noqa: E402

folder, key, sys.path[0], modules, together = sys.argv[1:6]
guarded = dict(row.split("=") for row in sys.argv[6].split(",")) if sys.argv[6] else {}
sys.argv = [sys.argv[0]]  # a module may parse the command line when it is imported
child_program.prepare(folder, key)


def look() -> Dict[str, Any]:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        status = dict(line.split(":", 1) for line in file if ":" in line)
    sizes = {
        name: int(status[field].split()[0]) * 1024
        for name, field in (
            ("rss_bytes", "VmRSS"),
            ("peak_bytes", "VmHWM"),
            ("as_bytes", "VmPeak"),
            ("file_bytes", "RssFile"),
        )
        if field in status
    }
    return {
        "file_bytes": 0,
        **sizes,
        "threads": int(status["Threads"]),
        "fds": len(os.listdir("/proc/self/fd")) - 1,
        "touched_cuda": import_watch.holds_a_gpu(),
    }


def wait_for(name: str) -> None:
    if together == "together":
        child_program.wait_for(f"{folder}/{name}", sleep=import_watch.sleep)


def reset_peak() -> None:
    """Reset VmHWM (proc(5), clear_refs: 5) for each module; if forbidden, the first peak stays."""
    with contextlib.suppress(OSError):
        child_program.write("/proc/self/clear_refs", "5")


@contextlib.contextmanager
def under_lock(slots: int) -> Iterator[None]:
    """Let in as many ranks at once as the script does. Waiting here is no wait of the import."""
    files = [open(f"{folder}/guard.{slot}", "w") for slot in range(slots)]  # noqa: SIM115
    while files and not any(map(import_watch.take, files)):
        import_watch.sleep(0.02)
    try:
        yield
    finally:
        for file in files:
            file.close()


before = look()
watch = import_watch.Watch(f"{folder}/{key}.lock")
watch.begin()
if together == "together":
    child_program.write(f"{folder}/{key}.ready")
wait_for("go")
began, each, peak, private, module = time.monotonic(), {}, 0, 0, ""
out: Dict[str, Any] = {"outcome": "passed"}
for module in modules.split(","):
    child_program.write(f"{folder}/{key}.now", module)
    start = time.monotonic()
    try:
        with under_lock(int(guarded.get(module, 0))):
            reset_peak()
            __import__(module)
    except BaseException as error:  # whatever it is, the import did it
        fields = child_program.error_fields(error)
        out.update(
            outcome="failed",
            error_type=fields["type"],
            error=fields["message"],
            frames=fields["frames"],
        )
        break
    now = look()
    peak = max(peak, now["peak_bytes"])
    private = max(private, now["peak_bytes"] - now["file_bytes"])
    each[module] = round(time.monotonic() - start, 4)
took_s = round(time.monotonic() - began, 4)
out.update(look(), took_s=took_s, took_each_s=each, module=module, **watch.summary())
out.update(growth_bytes=out["rss_bytes"] - before["rss_bytes"], threads_before=before["threads"])
out.update(peak_bytes=max(peak, out["peak_bytes"]), private_bytes=private)
child_program.answer(folder, key, out)
wait_for("done")
os._exit(0)
