# /// trainprobe
# rung: 35
# question: Can a forked child still work once the script's imports and data are loaded?
# scope: host
# needs: [torch]
# timeout_s: 90
# climbs: []
# after: [environment, import_memory]
# means: An import, or building the data, leaves behind threads, locks or CUDA that a forked
#   child, such as a DataLoader worker, does not survive.
# ///
"""Import what the script imports, build its data, then fork children that calculate, encode, log,
take locks and fetch a sample, each with a deadline.

Environment: TRAINPROBE_IMPORTS, TRAINPROBE_LOCAL_IMPORTS (names, by commas), TRAINPROBE_DATASET
(pkg.module:name or file.py:name), TRAINPROBE_SCRIPT, TRAINPROBE_NPROC, TRAINPROBE_DEADLINE_S.
Flags: --imports, --dataset, --script, --nproc, --timeout-s.
Measures: fork.threads_before {module}: the native threads that an import or the data started;
fork.child {op, outcome, library}: seconds.
What fails in a child is done once more in the process that was not forked: only what works there is
laid to the fork.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Dict

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit
from _fork_safety.report import Report, forks_itself
from _shared.child_processes import PythonChild
from _shared.proc import read_text

PREPARE = os.path.join(
    os.path.dirname(os.path.realpath(__file__)), "_fork_safety", "prepare_child.py"
)


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    parser.text("--imports", "TRAINPROBE_IMPORTS", "torch")
    parser.text("--dataset", "TRAINPROBE_DATASET")
    parser.text("--script", "TRAINPROBE_SCRIPT")
    parser.number("--nproc", "TRAINPROBE_NPROC", 1, 1)
    parser.seconds(90)
    asked = parser.parse_args()
    variables: Dict[str, object] = {
        "TRAINPROBE_IMPORTS": asked.imports,
        "TRAINPROBE_DATASET": asked.dataset,
        "TRAINPROBE_SCRIPT": asked.script,
        "PYTHONWARNINGS": "ignore::DeprecationWarning",
    }
    if asked.nproc > 1:  # as torchrun does
        variables["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
    with _emit.scratch_folder("fork") as folder:
        with _emit.phase("prepare and fork"):
            child = PythonChild(folder, "prepare", [PREPARE, folder], variables)
            until = time.monotonic() + asked.timeout_s - 6
            while child.alive() and time.monotonic() < until:
                time.sleep(0.02)
            child.end(abort_s=0.5)
        conclude(child, asked)


def conclude(child: PythonChild, asked: Any) -> None:
    texts = [read_text(asked.script)]
    texts += [read_text(asked.dataset.rpartition(":")[0])] if ".py:" in asked.dataset else []
    rows = [json.loads(line) for line in child.text("rows").splitlines() if line.endswith("}")]
    report = Report(rows, any(map(forks_itself, texts)))
    report.steps()
    report.children()
    report.known()
    if report.bad:
        more = f" And {len(report.bad) - 1} more." if len(report.bad) > 1 else ""
        _emit.result("no", report.bad[0] + more)
    for row in report.of("broken"):
        error = row["error"]
        _emit.result("cannot", f"The probe itself failed: {error['type']}: {error['message']}.")
    step, ending = child.text("now") or "start", child.ending()
    if ending.how == "timed_out":
        _emit.result("cannot", f"It hung at `{step}` until its time ran out.")
    if not report.of("done"):
        how = f"signal {ending.signal}" if ending.signal else f"exit code {ending.exit_code}"
        _emit.result("cannot", f"The process that was to fork ended at `{step}` by itself ({how}).")
    steps, children = report.of("step"), report.of("child")
    threads = sum(len(row["started"]) for row in steps)
    _emit.result(
        "yes",
        f"{len(children)} kinds of work are done in forked children after {len(steps)} imports and"
        f" steps, which started {threads} threads.",
    )


if __name__ == "__main__":
    main()
