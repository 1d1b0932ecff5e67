# /// trainprobe
# rung: 15
# question: Is a licence of our solver to be had on this host?
# scope: host
# needs: []
# timeout_s: 10
# after: []
# means: The solver starts without a licence and stops at the first step.
# ///
"""Look for the licence file that the solver reads: ACME_LICENCE, or /etc/acme/licence."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def emit(event: str, **fields: Any) -> None:
    """Append one event, one write a line; by hand there is no event file and nothing is written."""
    path = os.environ.get("TRAINPROBE_EVENTS")
    if path:
        line = json.dumps({"event": event, "at": time.time(), "rank": None, **fields}) + "\n"
        with open(path, "ab", buffering=0) as file:
            file.write(line.encode())


def main() -> int:
    """Answer yes, no or cannot, and give the exit code that goes with it."""
    path = os.environ.get("ACME_LICENCE", "/etc/acme/licence")
    emit("phase.begin", name="licence")
    there = os.path.exists(path)
    emit("phase.end", name="licence", took_s=0.0)
    if not there:
        emit(
            "fail",
            check="acme_licence",
            status="fail",
            value=path,
            says=f"There is no licence at {path}.",
            fix="Ask licences@acme.example for one.",
        )
    answer, says = (
        ("yes", f"The licence lies at {path}.")
        if there
        else ("no", f"There is no licence at {path}.")
    )
    emit("result", answer=answer, says=says)
    print(f"{answer.upper()}: {says}")
    return 0 if there else 10


if __name__ == "__main__":
    sys.exit(main())
