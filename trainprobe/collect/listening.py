"""Where the ranks of a job listen, so that a service is asked only if it is the job's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Sequence

from trainprobe.collect import procfs
from trainprobe.collect.collectors.sockets import Row, read_tables
from trainprobe.collect.descriptors import descriptors
from trainprobe.collect.members import Member


@dataclass(frozen=True)
class Listener:
    """A rank's listening socket; `ours`: it shares our network namespace."""

    member: Member
    kind: str
    address: str
    ours: bool = True

    @property
    def port(self) -> int:
        digits = self.address.rpartition(":")[2]
        return int(digits) if self.kind == "tcp" and digits.isdecimal() else 0

    @property
    def host(self) -> str:
        """What to connect to: loopback where it listens everywhere."""
        name = self.address.rpartition(":")[0].strip("[]")
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 - read off a socket, not bound to


def listeners(members: Sequence[Member], proc: str = "/proc") -> List[Listener]:
    """The listening TCP and unix sockets of the ranks, without those that workers inherited."""
    tables: Dict[str, List[Row]] = {}
    own = procfs.link(f"{proc}/self/ns/net")
    found = []
    for member in members:
        names = descriptors(member.pid, proc) if member.role == "rank" else None
        space = procfs.link(f"{proc}/{member.pid}/ns/net") if names else ""
        if not names:
            continue
        if space not in tables:
            tables[space] = [
                row for row in read_tables(f"{proc}/{member.pid}/net", {}) if row.state == "LISTEN"
            ]
        inodes = {
            int(name[8:-1])
            for name in names.values()
            if name.startswith("socket:[") and name[8:-1].isdecimal()
        }
        found += [
            Listener(member, row.kind, row.local, space == own)
            for row in tables[space]
            if row.inode in inodes
        ]
    return found
