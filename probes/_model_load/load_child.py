"""Loads a model by one way in this process, and writes down what it took. model_load starts one
process for each rank.

Use: python load_child.py FOLDER KEY WAY SOURCE alone|together. FOLDER/KEY.json is the answer,
KEY.now the step under way, KEY.stack faulthandler's dump. With `together` it writes KEY.ready,
waits for KEY.go or FOLDER/go, and keeps the model until FOLDER/done exists.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Dict, List

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from _model_load import ways
from _shared import child_program, named_object
from _shared.proc import bytes_in

del sys.path[:2]  # neither the probes nor this folder may shadow what the user's code imports


def memory() -> Dict[str, int]:
    """Bytes of this process: resident, peak, anonymous, and of files."""
    names = {
        "rss_bytes": "VmRSS",
        "peak_bytes": "VmHWM",
        "anon_bytes": "RssAnon",
        "file_bytes": "RssFile",
        "shmem_bytes": "RssShmem",
    }
    rows = bytes_in("/proc/self/status")
    return {name: rows[row] for name, row in names.items() if row in rows}


def devices(torch: Any) -> List[Dict[str, int]]:
    """The most that torch's allocator held on each GPU that this process used; [] without one."""
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return []
    rows = []
    for index in range(torch.cuda.device_count()):
        peak = torch.cuda.max_memory_allocated(index)
        if peak:
            free, total = torch.cuda.mem_get_info(index)
            rows.append(
                {"index": index, "peak_bytes": peak, "free_bytes": free, "total_bytes": total}
            )
    return rows


def main() -> None:
    folder, key, way, source, held = sys.argv[1:6]
    me = os.getpid()
    child_program.prepare(folder, key)
    out: Dict[str, Any] = {"outcome": "passed"}
    try:
        child_program.write(f"{folder}/{key}.now", "import")
        loading = ways.prepared(way, source)
        if held == "together":
            child_program.write(f"{folder}/{key}.ready")
            child_program.wait_for(f"{folder}/go", f"{folder}/{key}.go")
        out["before_bytes"] = memory().get("rss_bytes", 0)
        child_program.write(f"{folder}/{key}.now", "load")
        began = time.monotonic()
        model = loading.load()
        out["took_s"] = round(time.monotonic() - began, 4)
        if os.getpid() != me:
            os._exit(0)  # the user's code forked, and this is the other side of it
        out.update(ways.counted(model))
        out.update(memory(), devices=devices(sys.modules.get("torch")), torch_loads=loading.reads)
        if out["tensors"] == 0:
            out.update(
                outcome="nonsense",
                message=f"it returned {ways.shown(model)}, which holds no tensor",
            )
    except named_object.NamedObjectError as error:
        raised = child_program.error_fields(error.error) if error.error is not None else {}
        out.update(
            raised,
            outcome="mistyped" if error.mistyped else "failed",
            message=raised.get("message", error.sentence),
            sentence=error.sentence,
        )
    except ways.NotThisWayError as error:
        out.update(outcome="not_applicable", message=str(error))
    except BaseException as error:  # sys.exit of the user's code too is how this load ended
        if os.getpid() != me:
            os._exit(1)
        out.update(child_program.error_fields(error), outcome="failed", **memory())
    child_program.answer(folder, key, out)
    if held == "together":
        child_program.wait_for(f"{folder}/done")
    os._exit(0)  # whatever the user's code registered for the end is not ours to wait for


main()
