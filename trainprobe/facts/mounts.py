"""The file systems that the job uses, and whether they answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Mount(Fact):
    """One mount. `probe` is answered, timed_out, failed or not-tried: what became of a question for its size and one name in it, `took_s` seconds.

    `used_by` are the job's processes that have a file open on it or their working directory, as far as that can be seen: one that hangs
    while it opens a file has no descriptor yet.
    """

    path: str = ""
    fstype: str = ""
    device: str = ""
    remote: bool = False
    used_by: tuple[int, ...] = ()
    probe: str = ""
    took_s: float | None = None
    reason: str = ""


def parse_mounts(record: Evidence) -> list[Fact]:
    def mount(row: Mapping[str, Any]) -> Fact:
        probe = fields.part(row, "probe")
        return Mount(
            evidence=(record.id,),
            cell=record.cell,
            path=fields.text(row, "path"),
            fstype=fields.text(row, "fstype"),
            device=fields.text(row, "device"),
            remote=fields.flag(row, "remote") or False,
            used_by=fields.wholes(row, "used_by"),
            probe=fields.text(probe, "outcome"),
            took_s=fields.number(probe, "took_s"),
            reason=fields.text(probe, "reason"),
        )

    return fields.each(fields.items(record.data, "mounts"), mount)
