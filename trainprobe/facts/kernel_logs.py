"""What the kernel log says about kills, crashes and GPUs since the cell began."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class OomKill(Fact):
    """The kernel killed process `pid` for lack of memory. `in_cgroup` is true when a cgroup's limit was the reason."""

    pid: int = 0
    name: str = ""
    rss_bytes: int | None = None
    in_cgroup: bool = False
    at: float | None = None


@dataclass(frozen=True)
class Segfault(Fact):
    """A crash of process `pid` in `library` (empty where the kernel did not name one)."""

    pid: int = 0
    name: str = ""
    library: str = ""
    text: str = ""
    at: float | None = None


@dataclass(frozen=True)
class Xid(Fact):
    """An NVIDIA driver error by its number."""

    code: int = 0
    text: str = ""
    device: str = ""
    at: float | None = None


# Wordings: mm/oom_kill.c and arch/x86/mm/fault.c of Linux 3.10 to 6.18, and NVIDIA's driver.
_OOM = re.compile(
    r"(?P<cgroup>Memory cgroup out of memory|Out of memory)(?:: |.{0,40}?)Kill(?:ed)? process (?P<pid>\d{1,9}) \((?P<name>[^)]{0,64})\)(?P<rest>.{0,300})"
)
_ANON = re.compile(r"anon-rss:(\d{1,15})kB")
_SEGFAULT = re.compile(r"(?P<name>\S{1,64})\[(?P<pid>\d{1,9})\]:? (?P<what>segfault|general protection|trap [a-z ]{1,30}|traps:)(?P<rest>.{0,300})")
_TRAPS = re.compile(r"traps: (?P<name>\S{1,64})\[(?P<pid>\d{1,9})\] (?P<rest>.{0,300})")
_LIBRARY = re.compile(r" in ([^\s\[]{1,200})\[")
_XID = re.compile(r"NVRM: Xid \((?P<device>[^)]{0,64})\): (?P<code>\d{1,4}),? ?(?P<text>.{0,300})")


def parse_kernel_log(record: Evidence) -> list[Fact]:
    found: list[Fact] = []
    for row in fields.each(fields.items(record.data, "lines"), lambda row: row):
        text = fields.text(row, "text", cap=2000)
        fact = kernel_fact(text, {"evidence": (record.id,), "cell": record.cell}, fields.number(row, "at"))
        if fact is not None:
            found.append(fact)
    return found


def kernel_fact(text: str, base: Mapping[str, Any], at: float | None) -> Fact | None:
    """The fact that one line of a kernel log tells, None where it tells none."""
    kill = _OOM.search(text)
    if kill is not None:
        rss = _ANON.search(kill.group("rest"))
        in_cgroup = kill.group("cgroup").startswith("Memory cgroup")
        return OomKill(
            **base, pid=int(kill.group("pid")), name=kill.group("name"), rss_bytes=int(rss.group(1)) * 1024 if rss else None, in_cgroup=in_cgroup, at=at
        )
    xid = _XID.search(text)
    if xid is not None:
        return Xid(**base, code=int(xid.group("code")), text=text[:400], device=xid.group("device"), at=at)
    fault = _SEGFAULT.search(text) or _TRAPS.search(text)
    if fault is not None:
        library = _LIBRARY.search(fault.group("rest"))
        return Segfault(**base, pid=int(fault.group("pid")), name=fault.group("name"), library=library.group(1) if library else "", text=text[:400], at=at)
    return None
