"""Makes a case of a real run fit to be kept: nothing of the machine that made it, and no more
than judging needs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 150_000
HEAD_CHARACTERS, TAIL_CHARACTERS, FRAMES, THREADS, CALLS = 1500, 4000, 40, 8, 12
OF_KNOBS = ("rung", "cell.measures", "interrupted")
# The folder that a run works in has a name of its own each time; what the tool and torchrun make
# below it too.
WORKING = re.compile(r"/tmp/(trainprobe|torchelastic|pymp|torch)[-_][A-Za-z0-9_]+")
ADDRESS = re.compile(r"\b(?!127\.|0\.0\.|255\.)(?:\d{1,3}\.){3}\d{1,3}(?=[\]:\s\"']|$)")


def scrubber(folder: Path, host: str) -> Callable[[str], str]:
    """Return what replaces the names of this machine in a text. `folder` is where the run took
    place.

    Packages keep their place below `site-packages`, and Python's own files below `lib/python3.x`:
    frames are told by these.
    """
    known = {
        str(folder.resolve()): "/job",
        str(folder): "/job",
        str(ROOT): "/opt/trainprobe",
        sys.prefix: "/env",
        sys.base_prefix: "/python",
        os.path.dirname(os.path.realpath(sys.executable)): "/python/bin",
        os.path.expanduser("~"): "/home/user",
        tempfile.gettempdir() + "/job-": "/tmp/job-",
    }
    replaced = sorted(
        ((old, new) for old, new in known.items() if old not in ("/", "/usr")),
        key=lambda each: -len(each[0]),
    )
    # A short host name is a word of the language too (vm.overcommit, /sys/vm): only where it stands
    # alone.
    named = re.compile(rf"(?<![\w./-]){re.escape(host)}(?=_\d|[^\w./-]|\.?$)") if host else None

    def scrub(text: str) -> str:
        for old, new in replaced:
            text = text.replace(old, new)
        text = ADDRESS.sub("10.0.0.1", WORKING.sub(r"/tmp/\1-0", text))
        return named.sub("node1", text) if named else text

    return scrub


def whole(data: Any, scrub: Callable[[str], str]) -> Any:
    """Scrub every string of JSON data, also the keys."""
    if isinstance(data, str):
        return scrub(data)
    if isinstance(data, Mapping):
        return {scrub(str(key)): whole(value, scrub) for key, value in data.items()}
    return [whole(item, scrub) for item in data] if isinstance(data, list) else data


def smaller(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """Leave out of one look what no judgement rests on: the middle of long outputs, deep frames,
    threads that only wait.
    """
    if kind == "output":
        return {
            **data,
            "head": _from_start(str(data.get("head", ""))),
            "tail": _to_end(str(data.get("tail", ""))),
        }
    if kind in ("stacks.python", "stacks.native"):
        threads = sorted(data.get("threads", []), key=lambda each: each.get("name") != "MainThread")
        return {
            **data,
            "threads": [
                {**each, "frames": each.get("frames", [])[:FRAMES]} for each in threads[:THREADS]
            ],
        }
    if kind == "process":
        return {**data, "threads": data.get("threads", [])[:THREADS]}
    if kind == "collectives":
        return {**data, "calls": data.get("calls", [])[-CALLS:]}
    return data


def _from_start(text: str) -> str:
    return (
        text if len(text) <= HEAD_CHARACTERS else text[:HEAD_CHARACTERS].rpartition("\n")[0] + "\n"
    )


def _to_end(text: str) -> str:
    return text if len(text) <= TAIL_CHARACTERS else text[-TAIL_CHARACTERS:].partition("\n")[2]


def scrub_case(made: Path, kept: Path) -> None:
    """Write the case `made` to `kept`, scrubbed; ValueError where it is still too large. Copies
    of outputs (files/) are left out.
    """
    meta = json.loads((made / "case.json").read_text(encoding="utf-8"))
    scrub = scrubber(made.parent, str(meta.get("host") or socket.gethostname()))
    lines = []
    for line in (made / "evidence.jsonl").read_text(encoding="utf-8").splitlines():
        look = json.loads(line)
        if "#" in str(look.get("cell", "")) and look["kind"] not in OF_KNOBS:
            continue  # of a cell with a changed knob only how it came out is judged
        lines.append(
            json.dumps(
                whole(
                    {**look, "data": smaller(look["kind"], look.get("data", {})), "files": []},
                    scrub,
                )
            )
        )
    text = "\n".join(lines) + "\n"
    if len(text) > MOST_BYTES:
        raise ValueError(
            f"{made}: {len(text)} bytes are left, and {MOST_BYTES} are the most; cut more, or"
            " choose a smaller run"
        )
    if kept.exists():
        shutil.rmtree(kept)
    kept.mkdir(parents=True)
    (kept / "evidence.jsonl").write_text(text, encoding="utf-8")
    (kept / "case.json").write_text(
        json.dumps(whole({**meta, "case": "./case"}, scrub), indent=1) + "\n", encoding="utf-8"
    )
