"""What the user says of the job's surroundings: `--env FILE`, `--nodes N`, `--gpus N`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from trainprobe.case import Case
from trainprobe.logs.surroundings_text import read_surroundings
from trainprobe.logtext.plain import plain
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject
from trainprobe.regular_files import read_regular_file
from trainprobe.targets.environment import SCHEMA

FILE_CAP_BYTES = 8 * 2**20
STDIN = "-"
FORMS = "--env reads an environment dump (env), ulimit -a, python -m torch.utils.collect_env, pip list, df, ip addr, nvidia-smi, or what trainprobe collect-env wrote."


def look_at_given(case: Case, env_files: Sequence[str], nodes: int | None, gpus: int | None) -> None:
    """Record one `given` per file, and one for the size of the launch where it was told.

    Data: {source, host, path, values: {name: value}}, the names being those of facts/given.py.
    A file that cannot be read or tells nothing of the kind is a look that failed.
    """
    for path in env_files:
        try:
            look_at_given_text(case, path, _text_of(path), "env-file")
        except (OSError, ValueError) as error:
            why = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
            data = {"source": "env-file", "host": "", "path": path, "values": {}}
            source, reason = os.path.basename(path), f"{path} {why}"
            case.add("given", cell="job", source=source, outcome="unavailable", reason=reason, data=data)
    sizes: dict[str, str] = {}
    if nodes:
        sizes["nodes"] = str(nodes)
    if gpus:
        sizes["gpus_per_node"] = str(gpus)
    if nodes and gpus:
        sizes["world_size"] = str(nodes * gpus)
    if sizes:
        case.add("given", cell="job", source="command line", data={"source": "command-line", "host": "", "values": sizes})


def look_at_given_text(case: Case, path: str, text: str, source: str, *, cell: str = "job") -> Evidence:
    """Record one `given` with what a text says; `values` is empty where it says nothing, and then the look is `unavailable`."""
    values = read_surroundings("\n".join(plain(line) for line in text.splitlines()) if "\x1b" in text else text)
    made_by_us = f'"{SCHEMA}"' in text[:400]
    data: dict[str, Any] = {"source": "collect-env" if made_by_us else source, "host": _host_in(text) if made_by_us else "", "path": path, "values": values}
    subject = Subject("host", host=data["host"]) if data["host"] else Subject("job")
    if not values:
        return case.add(
            "given",
            subject=subject,
            cell=cell,
            source=os.path.basename(path),
            outcome="unavailable",
            reason=f"{path} tells nothing of a job's surroundings. {FORMS}",
            data=data,
        )
    return case.add("given", subject=subject, cell=cell, source=os.path.basename(path), data=data)


def _host_in(text: str) -> str:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    host = data.get("host") if isinstance(data, dict) else None
    return host[:200] if isinstance(host, str) else ""


def _text_of(path: str) -> str:
    content = sys.stdin.buffer.read(FILE_CAP_BYTES) if path == STDIN else read_regular_file(path, FILE_CAP_BYTES)
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", "replace")
    return content.replace(b"\0", b"\n").decode("utf-8", "replace")
