"""What the host and environment probes checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from trainprobe.facts.probe_results import events_of, probe_of
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class HostCheck(Fact):
    """`status` is ok, warn, fail, skip (it does not apply) or unknown (it could not be measured);
    `value` is what was found, as text; `fix` what to type.

    Of a readiness check also the `host`, how much a failure matters (`severity`: blocker, degraded,
    warning, info), who must act (`user`, `admin`), and the `threshold` with its `source`: as the
    check program said, or as the catalogue has it. All of these are "" where nothing says so.
    `sure` is false where a failure may be right for a reason that the check cannot see.
    """

    name: str = ""
    status: str = "unknown"
    value: str = ""
    says: str = ""
    fix: str = ""
    probe: str = ""
    host: str = ""
    severity: str = ""
    who: str = ""
    source: str = ""
    threshold: str = ""
    sure: bool = True

    @property
    def bad(self) -> bool:
        """Does it keep a job from starting well? A failed warning does not."""
        return self.status == "fail" and self.severity in ("blocker", "degraded")


STATES = ("ok", "warn", "fail", "skip", "unknown")


def parse_host_checks(record: Evidence) -> list[Fact]:
    """`note` and `fail` events that carry `check`: of the host and environment probes, and of
    any other that checks something so.
    """
    found: list[Fact] = []
    for event in events_of(record):
        check, status = event.get("check"), event.get("status")
        if event["event"] not in ("note", "fail") or not isinstance(check, str):
            continue
        if status not in STATES:
            status = "fail" if event["event"] == "fail" else "unknown"
        says, fix = (
            event.get(name) if isinstance(event.get(name), str) else "" for name in ("says", "fix")
        )
        found.append(
            HostCheck(
                (record.id,),
                record.cell,
                record.subject.rank,
                check[:200],
                str(status),
                shown(event.get("value")),
                says or "",
                fix or "",
                probe_of(record.cell),
                (
                    record.subject.host
                    if record.cell == f"{probe_of(record.cell)}@{record.subject.host}"
                    else ""
                ),
            )
        )
    return found


def shown(value: Any) -> str:
    """A value as text: texts as they are, all else as JSON; at most 4,000 characters."""
    if value is None or isinstance(value, str):
        return (value or "")[:4000]
    return json.dumps(fields.plain(value), ensure_ascii=False)[:4000]
