# /// trainprobe
# rung: 100
# question: Does your own command take steps on this many ranks?
# scope: ranks
# needs: [script]
# timeout_s: 120
# climbs: [ranks]
# after: []
# means: Everything below it passed, so the fault is in the script, its data or its environment. The
#   ranks' stacks and exceptions say where.
# ///
"""Run one script under the witness and print what the witness saw. The ladder runs the user's
command itself; this is its form by hand.

Use: python probes/user_script.py [--timeout-s S] script.py [its arguments]. The script runs as
`__main__` in a child process. Its output goes straight through. The answer is yes when it took a
step or ended with 0 without torch, no when it failed.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Dict, List

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit

WITNESS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "_witness")


def witnessed(folder: str) -> List[Dict[str, Any]]:
    """Read the events of all processes in the order of their time; a torn last line is left out."""
    events = []
    for path in glob.glob(os.path.join(folder, "*.jsonl")):
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    events.append(json.loads(line))
                except ValueError:
                    continue
    return sorted(events, key=lambda event: event["at"])


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    hint = "end the script after this time; passed when it took steps until then"
    parser.add_argument("--timeout-s", type=float, default=None, help=hint)
    parser.add_argument("script")
    parser.add_argument("arguments", nargs="...")
    asked = parser.parse_args()
    if not os.path.isfile(asked.script):
        _emit.result("cannot", f"There is no script {asked.script}.")
    folder = tempfile.mkdtemp(prefix="trainprobe-witness-")
    before = os.environ.get("PYTHONPATH")
    environment = {
        **os.environ,
        "TRAINPROBE_WITNESS_DIR": folder,
        "PYTHONPATH": WITNESS + (os.pathsep + before if before else ""),
    }
    environment.pop("TRAINPROBE_EVENTS", None)
    try:
        with _emit.phase("script"):
            child = subprocess.Popen(
                [sys.executable, asked.script, *asked.arguments], env=environment
            )
            try:
                code = child.wait(asked.timeout_s)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                code = None
        events = witnessed(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for event in events:
        details = {
            key: value
            for key, value in event.items()
            if key not in ("event", "says", "at", "seq", "frames", "argv")
        }
        tell = _emit.fail if event["event"] == "fail" else _emit.note
        tell(
            f"rank {event['rank']}: {event['says']} "
            + " ".join(
                f"{key}={value}"
                for key, value in details.items()
                if key not in ("name", "rank") and value is not None
            ),
            **details,
        )
    steps = max((event.get("optimizer_steps") or 0 for event in events), default=0)
    torch_seen = any(event.get("torch_imported") for event in events)
    if code not in (0, None):
        _emit.result(
            "no",
            f"The script ended with {f'signal {-code}' if code < 0 else f'exit code {code}'} after"
            f" {steps} optimizer steps.",
        )
    if steps or (code == 0 and not torch_seen):
        _emit.result(
            "yes",
            f"The script took {steps} optimizer steps and"
            f" {'was then stopped' if code is None else 'ended with exit code 0'}.",
        )
    if any(event.get("optimizer_steps", 0) is None for event in events):
        _emit.result(
            "yes",
            "The script ended with exit code 0. Its steps are compiled and could not be counted.",
        )
    _emit.result(
        "no",
        "The script"
        f" {'took no step in time' if code is None else 'ended with exit code 0 and took no optimizer step'}.",  # noqa: E501
    )


if __name__ == "__main__":
    main()
