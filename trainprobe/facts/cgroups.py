"""The limits of the job's cgroup and what was used of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainprobe.facts.jobs import LIVE_CELL
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class MemoryLimit(Fact):
    """The cgroup over one cell: the last look, with the highest peak and the sum of what was seen.

    `limit_bytes` None means no limit. `oom_kill_rise` is how many processes the kernel killed
    during the cell, None if not seen.
    `limit_hits` counts allocations that met the limit, `under_oom` says that processes stand still
    until memory is freed, `frozen` that the freezer has stopped them all; None where nothing tells.
    `host` is told where the job was looked at on several.
    """

    version: int = 0
    path: str = ""
    limit_bytes: int | None = None
    current_bytes: int | None = None
    peak_bytes: int | None = None
    oom_kill: int | None = None
    oom_kill_rise: int | None = None
    pids_max: int | None = None
    cpu_quota: float | None = None
    limit_hits: int | None = None
    under_oom: bool | None = None
    frozen: bool | None = None
    host: str = ""


def parse_cgroup(record: Evidence) -> list[Fact]:
    data = record.data
    return [
        MemoryLimit(
            evidence=(record.id,),
            cell=record.cell,
            version=fields.whole(data, "version") or 0,
            path=fields.text(data, "path"),
            limit_bytes=fields.whole(data, "limit_bytes"),
            current_bytes=fields.whole(data, "current_bytes"),
            peak_bytes=fields.whole(data, "peak_bytes"),
            oom_kill=fields.whole(data, "oom_kill"),
            oom_kill_rise=fields.whole(data, "oom_kill_rise"),
            pids_max=fields.whole(data, "pids_max"),
            cpu_quota=fields.number(data, "cpu_quota"),
            limit_hits=fields.whole(data, "limit_hits"),
            under_oom=fields.flag(data, "under_oom"),
            frozen=fields.flag(data, "frozen"),
        )
    ]


def join_limits(facts: list[Fact]) -> list[Fact]:
    """One limit per cell, and per host of a job on several: the last look with the highest peak;
    the rise as told, or first count from last.
    """
    by_place: dict[tuple[str, str], list[MemoryLimit]] = {}
    for fact in facts:
        if isinstance(fact, MemoryLimit):
            by_place.setdefault((fact.cell, fact.host), []).append(fact)
    return [fact for fact in facts if not isinstance(fact, MemoryLimit)] + [
        _joined(looks) for looks in by_place.values()
    ]


def _joined(looks: list[MemoryLimit]) -> MemoryLimit:
    last = looks[-1]
    rises = [look.oom_kill_rise for look in looks if look.oom_kill_rise is not None]
    counts = [look.oom_kill for look in looks if look.oom_kill is not None]
    rise = (
        max(rises, default=None) if rises else (counts[-1] - counts[0] if len(counts) > 1 else None)
    )
    if rise == 0 and last.cell.split("#")[0] == LIVE_CELL and (not counts or counts[-1] > 0):
        # nobody watched the job before the first look: a kill that is counted already may have been
        # a rank's
        rise = None
    peaks = [look.peak_bytes for look in looks if look.peak_bytes is not None]
    limits = [look.limit_bytes for look in looks if look.limit_bytes is not None]
    return replace(
        last,
        evidence=tuple(dict.fromkeys(id_ for look in looks for id_ in look.evidence)),
        peak_bytes=max(peaks, default=None),
        limit_bytes=(
            last.limit_bytes if last.limit_bytes is not None else (limits[-1] if limits else None)
        ),
        oom_kill_rise=rise if rise is None or rise >= 0 else None,
    )
