"""What the ranks run on, for comparing them: the libtorch and libnccl in their memory, their Python
and backend, and the network interfaces of their host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Tuple

from trainprobe.collect import procfs
from trainprobe.collect.collector import Collector, JobView
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

MAPS_BYTES = 16 * 2**20
INTERFACES_CAP = 64
_LIBRARIES = re.compile(r" (/\S.*/(libtorch_cpu\.so|libnccl\.so[\d.]*))$", re.MULTILINE)
_PYTHON = re.compile(r"/(?:lib)?python(3\.\d+)(?:\.so[\d.]*|t)?$", re.MULTILINE)


@dataclass(frozen=True)
class RankLibraries(Fact):
    """One rank: the files of libtorch and libnccl that it has loaded, empty for none, with the
    versions that their packages tell, and Python's as `3.11`.

    `backend` is nccl or gloo once it has made a process group. `interfaces` are those that it can
    name; empty where that is not known.
    """

    pid: int = 0
    python: str = ""
    torch_path: str = ""
    torch_version: str = ""
    nccl_path: str = ""
    nccl_version: str = ""
    backend: str = ""
    interfaces: Tuple[str, ...] = ()


def look(job: JobView, deadline_s: float, proc: str = "/proc") -> LookResult:
    rows = [
        {"rank": member.rank, "pid": member.pid, **_loaded(maps), **_seen(member.pid, proc)}
        for member in job.members
        if member.role == "rank"
        and (maps := procfs.read_or_none(f"{proc}/{member.pid}/maps", MAPS_BYTES))
    ]
    if not rows:
        return refused("unavailable", f"no memory map of a rank could be read: {procfs.missing()}")
    asked = {
        f"{proc}/{row['pid']}/root{row[name]}": str(row[name])
        for row in rows
        for name in ("torch_path", "nccl_path")
        if row[name]
    }
    # the same file has one version; on one host only different files are worth a question
    files = {path: place for place, path in reversed(list(asked.items()))}
    if len(files) < 2 and (job.data.get("nnodes") or 1) < 2 and not job.data.get("elsewhere"):
        return LookResult({"ranks": rows})
    from trainprobe.collect.child_programs import json_lines, run_child

    ran = run_child("libraries_child", *files.values(), timeout_s=deadline_s * 0.8)
    versions = {
        asked.get(str(row.get("path")), ""): str(row.get("version"))
        for row in json_lines(ran.stdout)
    }
    data: Dict[str, Any] = {"ranks": rows, "versions": versions}
    if ran.ended.how in ("timed_out", "unkillable"):
        return LookResult(data, "partial", "reading the versions of the libraries took too long")
    return LookResult(data)


def _loaded(maps: str) -> Dict[str, str]:
    found = {"torch_path": "", "nccl_path": "", "python": ""}
    for path, name in _LIBRARIES.findall(maps):
        found["torch_path" if name.startswith("libtorch") else "nccl_path"] = path
    python = _PYTHON.search(maps)
    if python:
        found["python"] = python.group(1)
    return found


def _seen(pid: int, proc: str) -> Dict[str, Any]:
    from trainprobe.targets.process_table import backend_of

    table = (procfs.read_or_none(f"{proc}/{pid}/net/dev") or "").split("\n")[2:]
    interfaces = [line.partition(":")[0].strip() for line in table if ":" in line]
    backend = backend_of(procfs.thread_files(pid, "comm", proc))
    return {"backend": backend, "interfaces": interfaces[:INTERFACES_CAP]}


def parse(record: Evidence) -> List[Fact]:
    versions = fields.part(record.data, "versions")

    def rank(row: Mapping[str, Any]) -> Fact:
        torch, nccl = (
            fields.text(versions, fields.text(row, name)) for name in ("torch_path", "nccl_path")
        )
        return fields.fact(
            RankLibraries,
            record,
            row,
            rank=fields.whole(row, "rank"),
            torch_version=torch,
            nccl_version=nccl,
            interfaces=fields.texts(row, "interfaces"),
        )

    return fields.each(fields.items(record.data, "ranks"), rank)


COLLECTOR = Collector(
    "libraries",
    look,
    deadline_s=1.0,
    source="/proc/PID/maps",
    parse=parse,
    facts=(RankLibraries,),
)
