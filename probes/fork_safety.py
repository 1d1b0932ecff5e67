# /// trainprobe
# rung: 35
# question: After the script's imports and its data are there, can a forked child still do its work?
# scope: host
# needs: [torch]
# timeout_s: 90
# climbs: []
# after: [environment, import_memory]
# means: An import or the building of the data leaves threads, locks or CUDA behind that a forked child, such as a worker of a DataLoader, does not survive.
# ///
"""Import what the script imports, build its data, then fork children that calculate, encode, log, take locks and fetch a sample, each with a deadline.

Environment: TRAINPROBE_IMPORTS, TRAINPROBE_LOCAL_IMPORTS (names, by commas), TRAINPROBE_DATASET (pkg.module:name or file.py:name), TRAINPROBE_SCRIPT,
TRAINPROBE_NPROC, TRAINPROBE_DEADLINE_S. Flags: --imports, --dataset, --script, --nproc, --timeout-s.
Measures: fork.threads_before {module}: the native threads that an import or the data started; fork.child {op, outcome, library}: seconds.
What fails in a child is done once more in the process that was not forked: only what works there is laid to the fork.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from _fork import _report  # isort: skip  # before _emit, which takes this folder off the path
import _emit

PREPARE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "_fork", "_prepare.py")


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    parser.add_argument("--imports", default=os.environ.get("TRAINPROBE_IMPORTS") or "torch")
    parser.add_argument("--dataset", default=os.environ.get("TRAINPROBE_DATASET", ""))
    parser.add_argument("--script", default=os.environ.get("TRAINPROBE_SCRIPT", ""))
    parser.add_argument("--nproc", type=int, default=_emit.number_from_environment("TRAINPROBE_NPROC", 1, 1))
    parser.add_argument("--timeout-s", type=float, default=float(os.environ.get("TRAINPROBE_DEADLINE_S") or 90))
    asked = parser.parse_args()
    told = {
        "TRAINPROBE_IMPORTS": asked.imports,
        "TRAINPROBE_DATASET": asked.dataset,
        "TRAINPROBE_SCRIPT": asked.script,
        "PYTHONWARNINGS": "ignore::DeprecationWarning",
    }
    environment = {**os.environ, **told}
    environment.pop("TRAINPROBE_EVENTS", None)
    if asked.nproc > 1:
        environment.setdefault("OMP_NUM_THREADS", "1")  # as torchrun does
    with _emit.scratch_folder("fork") as folder:
        with _emit.phase("prepare and fork"), open(f"{folder}/out", "wb") as output:
            child = subprocess.Popen(
                [sys.executable, PREPARE, folder], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
            until = time.monotonic() + asked.timeout_s - 6
            while child.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            late = child.poll() is None
            for sent in (signal.SIGABRT, signal.SIGKILL) if late else ():
                os.killpg(child.pid, sent)
                time.sleep(0.5)
            child.wait(3)
        conclude(folder, asked, late, child.returncode)


def conclude(folder: str, asked: Any, late: bool, code: int) -> None:
    texts = [_report.read(asked.script), _report.read(asked.dataset.rpartition(":")[0]) if ".py:" in asked.dataset else ""]
    report = _report.Report(_report.rows_of(folder), any(map(_report.forks_itself, texts)))
    report.steps()
    report.children()
    report.known()
    if report.bad:
        _emit.result("no", report.bad[0] + (f" And {len(report.bad) - 1} more." if len(report.bad) > 1 else ""))
    for row in report.of("broken"):
        _emit.result("cannot", f"The probe itself failed: {row['error']['type']}: {row['error']['message']}.")
    step = _report.read(f"{folder}/now") or "start"
    if late:
        _emit.result("cannot", f"It stood still at `{step}` until its time was over.")
    if not report.of("done"):
        _emit.result("cannot", f"The process that was to fork ended at `{step}` by itself ({f'signal {-code}' if code < 0 else f'exit code {code}'}).")
    steps, children = report.of("step"), report.of("child")
    threads = sum(len(row["started"]) for row in steps)
    _emit.result("yes", f"{len(children)} kinds of work are done in forked children after {len(steps)} imports and steps, which started {threads} threads.")


if __name__ == "__main__":
    main()
