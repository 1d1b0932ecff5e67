"""How the agents of one job on this host were told to meet, and in what they differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from trainprobe.facts import Job

ALIKE = ("rdzv-id", "rdzv-endpoint", "master-addr", "master-port")
"""What all agents of a job must be told alike; their numbers differ rightly."""


def told_apart(job: Job, agents: Iterable[int]) -> Mapping[str, tuple[str, ...]]:
    """The options of the rendezvous in which these launchers differ, with their values by pid."""
    pids = set(agents)
    commands = [
        other.cmdline
        for other in sorted(job.others, key=lambda each: each.pid)
        if other.pid in pids
    ]
    values = {name: tuple(_value(command, name) for command in commands) for name in ALIKE}
    return {name: found for name, found in values.items() if len(set(found)) > 1}


def _value(command: str, name: str) -> str:
    found = re.findall(rf"\s--?{name.replace('-', '[-_]')}(?:=|\s+)(\S+)", command)
    return str(found[-1]) if found else "not given"
