"""File locks: who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class LockWait(Fact):
    """Process `pid` waits for a file lock that `holder_pid` holds (None where the kernel does not say). `path` may be empty."""

    pid: int = 0
    holder_pid: int | None = None
    path: str = ""
    kind: str = ""
    device: str = ""
    inode: int | None = None


@dataclass(frozen=True)
class HeldLock(Fact):
    """Process `pid` holds a lock on the file `path`; who asks again and again instead of sleeping is in no list of the kernel's waiters."""

    pid: int = 0
    path: str = ""
    kind: str = ""
    device: str = ""
    inode: int | None = None
    mode: str = ""  # READ or WRITE


def parse_locks(record: Evidence) -> list[Fact]:
    """Data: {held: [{kind, mode, pid, device, inode, path|null}], waiting: [{…, pid, behind_pid}]}. The path may stand on either side only."""
    held = fields.each(fields.items(record.data, "held"), lambda row: row)
    paths = {(fields.text(row, "device"), fields.whole(row, "inode")): fields.text(row, "path") for row in held if row.get("path")}

    def wait(row: Mapping[str, Any]) -> Fact:
        pid = fields.whole(row, "pid")
        if pid is None:
            raise fields.UnreadableError("a waiter without a pid")
        place = (fields.text(row, "device"), fields.whole(row, "inode"))
        behind = fields.whole(row, "behind_pid")
        return LockWait(
            evidence=(record.id,),
            cell=record.cell,
            pid=pid,
            holder_pid=behind if behind and behind > 0 else None,  # the kernel writes -1 or 0 for a holder that is no process here
            path=fields.text(row, "path") or paths.get(place, ""),
            kind=fields.text(row, "kind"),
            device=place[0],
            inode=place[1],
        )

    def hold(row: Mapping[str, Any]) -> Fact:
        pid = fields.whole(row, "pid") or 0
        inode, device = fields.whole(row, "inode"), fields.text(row, "device")
        path, kind, mode = fields.text(row, "path"), fields.text(row, "kind"), fields.text(row, "mode")
        return HeldLock(evidence=(record.id,), cell=record.cell, pid=pid, path=path, kind=kind, device=device, inode=inode, mode=mode)

    named = [row for row in held if row.get("path") and (fields.whole(row, "pid") or 0) > 0]
    return fields.each(fields.items(record.data, "waiting"), wait) + fields.each(named, hold)
