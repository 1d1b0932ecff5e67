"""Earlier runs of the same program that still live, what they hold, who starts them again; and
other runs that somebody answers for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

CHECK = "host.leftovers"
OTHER_CHECK = "host.other-run"


@dataclass(frozen=True)
class Leftover(Fact):
    """One process of an earlier run. `run` counts the runs from 0, oldest first; `role` is
    launcher, main, worker, child or tracker.

    `cpu_share` is in CPUs, sizes are in bytes, None where not measured. `gpus` is (index, bytes or
    None) for each GPU that it holds.
    `sure` is false for a worker that is joined to the run by its folder alone.
    """

    pid: int = 0
    ppid: int = 0
    run: int = 0
    role: str = ""
    sure: bool = True
    state: str = ""
    age_s: float | None = None
    began: float | None = None
    command: str = ""
    cpu_share: float | None = None
    rss_bytes: int | None = None
    pss_bytes: int | None = None
    ports: tuple[int, ...] = ()
    locks: tuple[str, ...] = ()
    gpus: tuple[tuple[int, int | None], ...] = ()
    shm_bytes: int = 0


@dataclass(frozen=True)
class Restarter(Fact):
    """Who starts an earlier run again. `kind` is unit, user-unit, container, cron, supervisor,
    shell, launcher or parent.

    `seen_again` says that one of its processes ended and another came while we looked. `pid` is 0
    where it is no process.
    """

    kind: str = ""
    name: str = ""
    pid: int = 0
    seen_again: bool = False


@dataclass(frozen=True)
class OtherRun(Fact):
    """A process of another run of the same program that somebody answers for: no left-over.
    `why` says who.
    """

    pid: int = 0
    state: str = ""
    command: str = ""
    why: str = ""


@dataclass(frozen=True)
class LeftoverLook(Fact):
    """What the look for earlier runs found in all. `port` is the one at which this run will meet,
    None where it takes a free one.

    `memory_bytes` is the least limit of this host or cgroup, `free_bytes` what is left of it,
    `cpus` how many may be used; `shm_bytes` is what the earlier runs hold in /dev/shm together.
    `cut` counts processes that are not listed.
    """

    kind: str = ""
    name: str = ""
    port: int | None = None
    memory_bytes: int | None = None
    free_bytes: int | None = None
    cpus: float | None = None
    shm_bytes: int = 0
    cut: int = 0


class _Base(TypedDict):
    evidence: tuple[str, ...]
    cell: str


def parse_leftovers(record: Evidence) -> list[Fact]:
    """Data: what collect/leftovers.py writes."""
    data, base = record.data, _Base(evidence=(record.id,), cell=record.cell)
    memory, needs, program = (fields.part(data, name) for name in ("memory", "needs", "program"))
    rows = fields.each(fields.items(data, "processes"), lambda row: _leftover(row, base))
    restarters = fields.each(
        fields.items(data, "restarters"),
        lambda row: Restarter(
            **base,
            kind=fields.text(row, "kind"),
            name=fields.text(row, "name"),
            pid=fields.whole(row, "pid") or 0,
            seen_again=fields.flag(row, "seen_again") or False,
        ),
    )
    others = fields.each(
        fields.items(data, "others"),
        lambda row: OtherRun(
            **base,
            pid=fields.whole(row, "pid") or 0,
            state=fields.text(row, "state"),
            command=fields.text(row, "command"),
            why=fields.text(row, "why"),
        ),
    )
    look = LeftoverLook(
        **base,
        kind=fields.text(program, "kind"),
        name=fields.text(program, "name"),
        port=fields.whole(needs, "port"),
        memory_bytes=fields.whole(memory, "limit_bytes"),
        free_bytes=fields.whole(memory, "free_bytes"),
        cpus=fields.number(data, "cpus"),
        shm_bytes=fields.whole(data, "shm_bytes") or 0,
        cut=fields.whole(data, "cut") or 0,
    )
    return [look, *rows, *restarters, *others]


def _leftover(row: Mapping[str, Any], base: _Base) -> Fact:
    pid = fields.whole(row, "pid")
    if pid is None:
        raise fields.UnreadableError("a process without a pid")
    ports: Sequence[object] = row.get("ports") or ()
    locks: Sequence[object] = row.get("locks") or ()
    gpus = [
        (fields.whole(one, "index"), fields.whole(one, "used_bytes"))
        for one in fields.items(row, "gpus")
    ]
    sure = fields.flag(row, "sure")
    return Leftover(
        **base,
        pid=pid,
        ppid=fields.whole(row, "ppid") or 0,
        run=fields.whole(row, "run") or 0,
        role=fields.text(row, "role"),
        sure=sure is not False,
        state=fields.text(row, "state"),
        age_s=fields.number(row, "age_s"),
        began=fields.number(row, "began"),
        command=fields.text(row, "command"),
        cpu_share=fields.number(row, "cpu_share"),
        rss_bytes=fields.whole(row, "rss_bytes"),
        pss_bytes=fields.whole(row, "pss_bytes"),
        ports=tuple(port for port in ports if isinstance(port, int)),
        locks=tuple(path for path in locks if isinstance(path, str)),
        gpus=tuple((index, used) for index, used in gpus if index is not None),
        shm_bytes=fields.whole(row, "shm_bytes") or 0,
    )
