"""Runs inside a rank of the job, asked for by `--deep`: torch writes what its flight recorder holds
into FOLDER, and we say what was done.

Text to the tool: it is copied into the folder and run in a dictionary of its own, which holds
FOLDER and UNTIL (Unix time after which it is too late and does nothing). It takes torch as the job
has loaded it, leaves nothing behind and raises nothing. Python 3.7, standard library only.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import time
from typing import Any

FOLDER: str = globals().get("FOLDER", "")
UNTIL: float = globals().get("UNTIL", 0.0)
MOST_GROUPS = 512
BACKENDS = ("gloo", "nccl", "nccl2", "xccl")
EVERYTHING = (True, True, False)  # includeCollectives, includeStackTraces, onlyActive
EVERYTHING_JSON = (True, False)  # includeCollectives, onlyActive


def _write(name: str, content: bytes) -> None:
    """Whole or not at all, and never through a link."""
    path = os.path.join(FOLDER, name)
    fd = os.open(
        path + ".part", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(fd, left) :]
    finally:
        os.close(fd)
    os.rename(path + ".part", path)


def _groups(report: dict[str, Any]) -> list[str]:
    """Add the ranks of each group, which gloo's dump lacks; return the backends in use."""
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    backends: list[str] = []
    try:
        world = c10d.GroupMember.WORLD
        report["rank"] = None if world is None else world.rank()
        known = c10d._world  # noqa: SLF001 - no public function lists the groups
        for group, made in list(known.pg_map.items())[:MOST_GROUPS]:
            backend = str(made[0])
            backends += [word.rpartition(":")[2] for word in backend.split(",")]
            # world rank to rank in the group
            places: dict[int, int] = known.pg_group_ranks.get(group) or {}
            ranks = sorted(places, key=lambda place: places[place])
            name, desc = str(known.pg_names.get(group, "")), str(getattr(group, "group_desc", ""))
            report["groups"].append(
                {"name": name, "desc": desc, "ranks": ranks, "backend": backend}
            )
    except Exception as error:  # noqa: BLE001 - torch keeps these privately, and may keep them elsewhere one day
        report["tried"].append({"what": "groups", "error": repr(error)[:300]})
    return backends


def _recorders(c10d: Any, backends: list[str]) -> list[tuple[str, str, Any]]:
    """Name, format and call of each recorder of this torch, the richest first."""
    found: list[tuple[str, str, Any]] = []
    by_name = getattr(c10d, "_dump_fr_trace", None)
    if (
        by_name is not None and "backend" in (by_name.__doc__ or "").partition("->")[0]
    ):  # since 2.15 each backend has its own
        known = [
            name
            for name in BACKENDS
            if name in backends or (name == "nccl2" and "nccl" in backends)
        ]
        found += [
            (name, "pickle", functools.partial(by_name, *EVERYTHING, backend=name))
            for name in known or BACKENDS
        ]
    elif by_name is not None:
        found.append(("", "pickle", functools.partial(by_name, *EVERYTHING)))
    for name, attribute, form, arguments in (
        ("nccl", "_dump_nccl_trace", "pickle", EVERYTHING),
        ("", "_dump_fr_trace_json", "json", EVERYTHING_JSON),
        ("nccl", "_dump_nccl_trace_json", "json", EVERYTHING_JSON),
    ):
        call = getattr(c10d, attribute, None)
        if call is not None:
            found.append((name, form, functools.partial(call, *arguments)))
    return found


def _dumps(report: dict[str, Any]) -> None:
    c10d = sys.modules.get("torch._C._distributed_c10d")
    if c10d is None:
        report["tried"].append({"what": "torch", "error": "it has not loaded torch.distributed"})
        return
    contents: list[bytes] = []
    for backend, form, dump in _recorders(c10d, _groups(report)):
        if form == "json" and report["dumps"]:
            continue  # it tells less: no frames
        try:
            content = dump()
            content = content.encode() if isinstance(content, str) else bytes(content)
            if content and content not in contents:
                contents.append(content)
                name = f"dump{len(contents)}"
                _write(name, content)
                report["dumps"].append(
                    {"file": name, "backend": backend, "format": form, "bytes": len(content)}
                )
        except Exception as error:  # noqa: BLE001 - the next recorder may answer
            report["tried"].append(
                {"what": f"{backend} {form}".strip(), "error": repr(error)[:300]}
            )


def _main() -> None:
    began = time.time()
    if began > UNTIL:
        return
    torch = sys.modules.get("torch")
    report: dict[str, Any] = {
        "pid": os.getpid(),
        "torch": str(getattr(torch, "__version__", "")),
        "dumps": [],
        "tried": [],
        "groups": [],
        "rank": None,
    }
    _dumps(report)
    report["ran_s"] = time.time() - began
    _write("said", json.dumps(report).encode())


# It runs in somebody's job, which it must not end whatever happens.
with contextlib.suppress(BaseException):
    _main()
