"""Which looks go on beside the stacks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainprobe.attach.beside import Side

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.collect.members import Member

KERNEL_LOG_BEFORE_S = 24 * 3600.0


def sides_between(case: Case, cell: str, members: Sequence[Member], job: Mapping[str, Any]) -> list[Side]:
    """Return the looks that are made between the first and the second look at the stacks. `job` is the job's record."""
    from trainprobe.collect.deadlines import look_at_deadlines
    from trainprobe.collect.files import look_at_files
    from trainprobe.collect.flight_recorder import look_at_live_dumps
    from trainprobe.collect.gpus import look_at_gpus
    from trainprobe.collect.kernel_log import look_at_kernel_log
    from trainprobe.collect.locks import look_at_locks
    from trainprobe.collect.mounts import look_at_mounts
    from trainprobe.collect.ports import look_at_ports
    from trainprobe.collect.pressure import look_at_pressure
    from trainprobe.collect.ras import look_at_ras
    from trainprobe.collect.sockets import look_at_sockets
    from trainprobe.collect.worker_server import look_at_worker_servers

    began = job.get("began")
    began = float(began) if isinstance(began, (int, float)) else None
    environment = job.get("environment") or {}
    since = began if began is not None else time.time() - KERNEL_LOG_BEFORE_S
    return [
        Side("pressure", lambda: look_at_pressure(case, cell, members, 1)),
        Side("ports", lambda: look_at_ports(case, cell, members, 1)),
        Side("locks", lambda: look_at_locks(case, cell, members)),
        Side("sockets", lambda: look_at_sockets(case, cell, members)),
        Side("files", lambda: look_at_files(case, cell, members)),
        Side("flight_recorder", lambda: look_at_live_dumps(case, cell, members, environment, began)),
        Side("mounts", lambda: look_at_mounts(case, cell, members)),
        Side("deadlines", lambda: look_at_deadlines(case, cell, members, job)),
        Side("ras", lambda: look_at_ras(case, cell, members, merged(environment))),
        Side("worker_server", lambda: look_at_worker_servers(case, cell, members)),
        Side("gpus", lambda: look_at_gpus(case, cell, deadline_s=2.0)),
        Side("kernel_log", lambda: look_at_kernel_log(case, cell, since, deadline_s=1.5)),
    ]


def merged(environment: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return what the job's processes have set, by name: the job's own first, then the first rank's that has it."""
    found: dict[str, str] = {}
    for who in sorted(environment, key=lambda name: str(name) != "job"):
        found = {**environment[who], **found}
    return found


def sides_after(case: Case, cell: str, members: Sequence[Member]) -> list[Side]:
    """Return the looks that are made a second time, together with the second look at the stacks."""
    from trainprobe.collect.ports import look_at_ports
    from trainprobe.collect.pressure import look_at_pressure

    return [
        Side("pressure", lambda: look_at_pressure(case, cell, members, 2)),
        Side("ports", lambda: look_at_ports(case, cell, members, 2)),
    ]


def sides_last(case: Case, cell: str, members: Sequence[Member]) -> list[Side]:
    """Return the looks that are made once more after the last look at the stacks, where that came later than a moment."""
    from trainprobe.collect.sockets import look_at_sockets

    return [Side("sockets", lambda: look_at_sockets(case, cell, members))]
