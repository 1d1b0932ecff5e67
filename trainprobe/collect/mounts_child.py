"""The program that `mounts.py` runs: ask each file system for its numbers and one name, a thread
each, and print a JSON line per answer.

`mounts_child.py SECONDS PATH…`. A thread that hangs in the kernel is left behind, and with it
perhaps this whole process.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Dict


def main() -> None:
    ends = time.monotonic() + float(sys.argv[1])
    threads = [threading.Thread(target=tell, args=(path,), daemon=True) for path in sys.argv[2:]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    os._exit(0)


def tell(path: str) -> None:
    """Print {path, outcome, took_s, reason}. A refusal is an answer: the server is there."""
    began = time.monotonic()
    answer: Dict[str, object] = {"path": path, "outcome": "answered", "reason": ""}
    try:
        os.statvfs(path)
        with os.scandir(path) as names:
            next(names, None)
    except PermissionError as error:
        answer["reason"] = f"answered with: {error.strerror}"
    except OSError as error:
        answer.update(outcome="failed", reason=f"{error.strerror or error}")
    answer["took_s"] = round(time.monotonic() - began, 4)
    os.write(1, (json.dumps(answer) + "\n").encode())


if __name__ == "__main__":
    main()
