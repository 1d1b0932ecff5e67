"""What torch's worker server told of a rank."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class WorkerServer(Fact):
    """The server of one rank. `waiting` names the wait counters that are active now, such as `pytorch.wait_counter.c10d.init_process_group`."""

    pid: int = 0
    handlers: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


def parse_worker_server(record: Evidence) -> list[Fact]:
    data = record.data
    counters = fields.part(data, "wait_counters")
    waiting = tuple(str(name) for name in counters if (fields.whole(fields.part(counters, name), "active_count") or 0) > 0)
    pid = fields.whole(data, "pid") or record.subject.pid or 0
    return [WorkerServer((record.id,), record.cell, record.subject.rank, pid, fields.texts(data, "handlers"), waiting)]
