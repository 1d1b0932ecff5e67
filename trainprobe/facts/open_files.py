"""What the job's processes have open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class OpenFile(Fact):
    """One open file. `kind` is file, device or memory; `mode` r, w or rw; `pos` and `size` in bytes, None on a network file system (never asked).

    `deleted` says that its name is gone though the file is still open.
    """

    pid: int = 0
    fd: int | None = None
    path: str = ""
    kind: str = ""
    inode: int | None = None
    mode: str = ""
    pos: int | None = None
    size: int | None = None
    deleted: bool = False


@dataclass(frozen=True)
class PipeEnd(Fact):
    """One end of a pipe or FIFO. `other_pids` are the processes but this one with the other end open, as far as they may be looked at.

    `complete` says that all processes of the host were looked at, so that no other pid means that nobody else has it open. `others` holds
    the command lines of those that do not belong to the job.
    """

    pid: int = 0
    fd: int | None = None
    path: str = ""
    inode: int | None = None
    mode: str = ""
    other_pids: tuple[int, ...] = ()
    complete: bool = False
    others: tuple[str, ...] = ()


def parse_files(record: Evidence) -> list[Fact]:
    pid = fields.whole(record.data, "pid")
    if pid is None:
        raise fields.UnreadableError("open files without a pid")
    complete = fields.flag(record.data, "owners_complete") or False

    def opened(row: Mapping[str, Any]) -> Fact:
        kind = fields.text(row, "type")
        if kind in ("pipe", "fifo"):
            return PipeEnd(
                evidence=(record.id,),
                cell=record.cell,
                rank=record.subject.rank,
                pid=pid,
                fd=fields.whole(row, "fd"),
                path=fields.text(row, "path"),
                inode=fields.whole(row, "inode"),
                mode=fields.text(row, "mode"),
                other_pids=fields.wholes(row, "other_pids"),
                complete=complete,
                others=fields.texts({"names": list(fields.part(row, "other_commands").values())}, "names"),
            )
        return OpenFile(
            evidence=(record.id,),
            cell=record.cell,
            rank=record.subject.rank,
            pid=pid,
            fd=fields.whole(row, "fd"),
            path=fields.text(row, "path"),
            kind=kind,
            inode=fields.whole(row, "inode"),
            mode=fields.text(row, "mode"),
            pos=fields.whole(row, "pos"),
            size=fields.whole(row, "size"),
            deleted=fields.flag(row, "deleted") or False,
        )

    return fields.each(fields.items(record.data, "open"), opened)
