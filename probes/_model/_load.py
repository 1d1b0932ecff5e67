"""Load a model by one way in this process, and write down what it took. Started by model_load, one process for each rank.

Use: python _load.py FOLDER KEY WAY SOURCE alone|together. FOLDER/KEY.json is the answer, KEY.now the step under way, KEY.stack faulthandler's words
(SIGABRT asks for them), KEY.ready and KEY.go, or `go` for all, the start of those that load together. The model is kept until FOLDER/done is there.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import time
import traceback
from typing import Any, Dict, List

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import _given
from _model import _ways

HERE = os.path.dirname(os.path.realpath(__file__))
PARENT = os.getppid()  # whoever started this; without it nobody would ever say that it is done
del sys.path[:2]  # neither the probes nor this folder may shadow what the user's code imports


def memory() -> Dict[str, int]:
    """Bytes of this process: resident, its highest, and of the resident what belongs to no file (anon) and to files (file)."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        rows = dict(line.split(":", 1) for line in file if ":" in line)
    names = {"rss_bytes": "VmRSS", "peak_bytes": "VmHWM", "anon_bytes": "RssAnon", "file_bytes": "RssFile", "shmem_bytes": "RssShmem"}
    return {name: int(rows[row].split()[0]) * 1024 for name, row in names.items() if row in rows}


def devices(torch: Any) -> List[Dict[str, int]]:
    """The most that torch's allocator held on each GPU that this process used; [] without one."""
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return []
    rows = []
    for index in range(torch.cuda.device_count()):
        peak = torch.cuda.max_memory_allocated(index)
        if peak:
            free, total = torch.cuda.mem_get_info(index)
            rows.append({"index": index, "peak_bytes": peak, "free_bytes": free, "total_bytes": total})
    return rows


def told(error: BaseException) -> Dict[str, Any]:
    """An exception as fields, its frames outermost first, without our own."""
    entries = [
        one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith(os.path.dirname(HERE)) and "importlib" not in one.filename
    ]
    rows = [{"file": one.filename, "line": one.lineno, "function": one.name, "text": (one.line or "")[:200]} for one in entries[-60:]]
    return {"outcome": "failed", "type": type(error).__name__, "message": str(error)[:4000], "frames": rows}


def main() -> None:
    folder, key, way, source, held = sys.argv[1:6]
    me = os.getpid()
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("500")  # the kernel is to take one of these, and not the ladder
    faulthandler.enable(open(f"{folder}/{key}.stack", "w", encoding="utf-8"), all_threads=True)  # noqa: SIM115 - open until the end

    def now(step: str) -> None:
        with open(f"{folder}/{key}.now", "w", encoding="utf-8") as file:
            file.write(step)

    def wait_for(*names: str) -> None:
        while os.getppid() == PARENT and not any(os.path.exists(f"{folder}/{name}") for name in names):
            time.sleep(0.01)

    out: Dict[str, Any] = {"outcome": "passed"}
    try:
        now("import")
        loading = _ways.prepared(way, source)
        if held == "together":
            open(f"{folder}/{key}.ready", "w", encoding="utf-8").close()
            wait_for("go", f"{key}.go")
        out["before_bytes"] = memory().get("rss_bytes", 0)
        now("load")
        began = time.monotonic()
        kept = loading.load()
        out["took_s"] = round(time.monotonic() - began, 4)
        if os.getpid() != me:
            os._exit(0)  # the user's code forked, and this is the other side of it
        out.update(_ways.counted(kept))
        out.update(memory(), devices=devices(sys.modules.get("torch")), torch_loads=loading.seen)
        if out["tensors"] == 0:
            out.update(outcome="nonsense", message=f"it returned {_ways.shown(kept)}, which holds no tensor")
    except _given.GivenError as error:
        raised = told(error.error) if error.error is not None else {}
        out.update(raised, outcome="mistyped" if error.mistyped else "failed", message=raised.get("message", error.says), sentence=error.says)
    except _ways.NotThisWayError as error:
        out.update(outcome="not_applicable", message=str(error))
    except BaseException as error:  # sys.exit of the user's code too is how this load ended
        if os.getpid() != me:
            os._exit(1)
        out.update(told(error), **memory())
    with open(f"{folder}/{key}.tmp", "w", encoding="utf-8") as file:
        json.dump(out, file, default=repr)
    os.rename(f"{folder}/{key}.tmp", f"{folder}/{key}.json")
    if held == "together":
        wait_for("done")
    os._exit(0)  # whatever the user's code registered for the end is not ours to wait for


main()
