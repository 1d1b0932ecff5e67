"""What the kernel log says about kills, crashes and GPUs since the cell began."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainprobe.facts.log_events import LINE_CHARACTERS, LogEvent
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.signatures import match_line


@dataclass(frozen=True)
class OomKill(Fact):
    """The kernel killed process `pid` for lack of memory. `in_cgroup` is true when a cgroup's
    limit was the reason.
    """

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
    """An NVIDIA driver error by its number. `device` is the PCI address as the driver prints it,
    `pid` and `name` the process's, where it tells them.
    """

    code: int = 0
    text: str = ""
    device: str = ""
    at: float | None = None
    pid: int | None = None
    name: str = ""


# Wordings: mm/oom_kill.c and arch/x86/mm/fault.c of Linux 3.10 to 6.18, and NVIDIA's driver 3xx to
# 580.
_OOM = re.compile(
    r"(?P<cgroup>Memory cgroup out of memory|Out of memory)(?:: |.{0,40}?)Kill(?:ed)? process"
    r" (?P<pid>\d{1,9}),? \((?P<name>[^)]{0,64})\)(?P<rest>.{0,300})"
)
# Before 4.19 the line with the sizes is one of its own; from 5.0 on another names the constraint.
_KILLED = re.compile(
    r"(?:^|\] |: )Killed process (?P<pid>\d{1,9}) \((?P<name>[^)]{0,64})\)(?P<rest>"
    r" total-vm:.{0,300})"
)
_CONSTRAINT = re.compile(
    r"oom-kill:constraint=(?P<constraint>\w{1,40}),.{0,600}?task=(?P<name>[^,]{0,64}),pid=(?P<pid>\d{1,9})"
)
# What comes after each kill, and the only line left where the others were cut away.
_REAPED = re.compile(r"oom_reaper: reaped process (?P<pid>\d{1,9}) \((?P<name>[^)]{0,64})\)")
_ANON = re.compile(r"anon-rss:(\d{1,15})kB")
_SEGFAULT = re.compile(
    r"(?P<name>\S{1,64})\[(?P<pid>\d{1,9})\]:? (?P<what>segfault|general protection|trap [a-z"
    r" ]{1,30}|traps:)(?P<rest>.{0,300})"
)
_TRAPS = re.compile(r"traps: (?P<name>\S{1,64})\[(?P<pid>\d{1,9})\] (?P<rest>.{0,300})")
_LIBRARY = re.compile(r" in ([^\s\[]{1,200})\[")
_XID = re.compile(r"NVRM: Xid \((?P<device>[^)]{0,64})\): (?P<code>\d{1,4}),? ?(?P<text>.{0,300})")
_XID_PID = re.compile(r"pid='?(\d{1,9})'?(?:, name=([^,]{1,64}))?")
# A driver that finds its device gone while it is loaded says so without a number; it is what Xid 79
# tells of.
_OFF_BUS = re.compile(
    r"NVRM: (?:The NVIDIA )?GPU (?:at )?(?P<device>[\w:.]{0,40}?):? (?:GPU )?has fallen off the"
    r" bus|NVRM: fallen off the bus"
)
_OFF_BUS_CODE = 79
_OF_THE_KERNEL = frozenset({"link-down", "acs-on"})


def parse_kernel_log(record: Evidence) -> list[Fact]:
    found: list[Fact] = []
    for row in fields.each(fields.items(record.data, "lines"), lambda row: row):
        text = fields.text(row, "text", cap=2000)
        fact = kernel_fact(
            text, {"evidence": (record.id,), "cell": record.cell}, fields.number(row, "at")
        )
        if fact is not None:
            add_kernel_fact(found, fact)
        else:
            found += _known(text, record, fields.number(row, "at"))
    return found


def _known(text: str, record: Evidence, at: float | None) -> list[LogEvent]:
    """What the kernel says of links and of the IOMMU, by the wordings of signatures/."""
    told = match_line(text, _OF_THE_KERNEL)
    base: dict[str, Any] = {
        "evidence": (record.id,),
        "cell": record.cell,
        "stream": "kernel",
        "role": "kernel",
        "at": at,
        "host": record.subject.host,
    }
    return [
        LogEvent(
            **base,
            signature=hit.signature.id,
            event=hit.signature.shows,
            line=hit.line[:LINE_CHARACTERS],
            captured=hit.captured,
        )
        for hit in told
    ]


def kernel_fact(text: str, base: Mapping[str, Any], at: float | None) -> Fact | None:
    """The fact that one line of a kernel log tells, None where it tells none."""
    kill = (
        _OOM.search(text)
        or _KILLED.search(text)
        or _CONSTRAINT.search(text)
        or _REAPED.search(text)
    )
    if kill is not None:
        return _kill(kill, base, at)
    xid = _XID.search(text)
    if xid is not None:
        whose = _XID_PID.search(xid.group("text"))
        pid, name = (int(whose.group(1)), whose.group(2) or "") if whose is not None else (None, "")
        return Xid(
            **base,
            code=int(xid.group("code")),
            text=text[:400],
            device=xid.group("device"),
            at=at,
            pid=pid,
            name=name,
        )
    gone = _OFF_BUS.search(text)
    if gone is not None:
        return Xid(
            **base, code=_OFF_BUS_CODE, text=text[:400], device=gone.group("device") or "", at=at
        )
    fault = _SEGFAULT.search(text) or _TRAPS.search(text)
    if fault is not None:
        library = _LIBRARY.search(fault.group("rest"))
        return Segfault(
            **base,
            pid=int(fault.group("pid")),
            name=fault.group("name"),
            library=library.group(1) if library else "",
            text=text[:400],
            at=at,
        )
    return None


def add_kernel_fact(found: list[Fact], fact: Fact) -> None:
    """Add it, unless it is one more line about a kill that is known: the kernel tells of one in
    up to three lines, and each adds something.
    """
    for place, known in enumerate(found):
        if (
            isinstance(fact, OomKill)
            and isinstance(known, OomKill)
            and known.pid == fact.pid
            and known.cell == fact.cell
        ):
            rss = known.rss_bytes if known.rss_bytes is not None else fact.rss_bytes
            found[place] = replace(
                known, rss_bytes=rss, in_cgroup=known.in_cgroup or fact.in_cgroup
            )
            return
    found.append(fact)


def _kill(kill: re.Match[str], base: Mapping[str, Any], at: float | None) -> OomKill:
    groups = kill.groupdict()
    rss = _ANON.search(groups.get("rest") or "")
    in_cgroup = (groups.get("cgroup") or "").startswith("Memory cgroup") or groups.get(
        "constraint"
    ) == "CONSTRAINT_MEMCG"
    return OomKill(
        **base,
        pid=int(groups["pid"]),
        name=groups["name"],
        rss_bytes=int(rss.group(1)) * 1024 if rss else None,
        in_cgroup=in_cgroup,
        at=at,
    )
