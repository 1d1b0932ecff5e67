"""How the agents and the ranks of one job were told to meet, and in what they differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainprobe.facts import Job

ALIKE = ("rdzv-id", "rdzv-endpoint", "master-addr", "master-port")
"""What all agents of a job must be told alike; their numbers differ rightly."""
PLACE = ("MASTER_ADDR", "MASTER_PORT")
NOT_GIVEN = "not given"


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


def end_point(job: Job) -> tuple[str, str]:
    """Host and port at which the agents of a job were told to meet: by an agent's options, else by
    its environment. "" for what is not known.
    """
    agent = next((each.cmdline for each in job.others if each.role == "launcher"), "")
    told = next(iter(job.environment.values()), {})

    def asked(name: str) -> str:
        given = _value(agent, name)
        variable = name.upper().replace("-", "_")
        return given if given != NOT_GIVEN else told.get(f"PET_{variable}") or ""

    host, _, port = asked("rdzv-endpoint").rpartition(":")
    return (
        host or asked("master-addr") or told.get("MASTER_ADDR", ""),
        (port if host else "") or asked("master-port") or told.get("MASTER_PORT", ""),
    )


def _value(command: str, name: str) -> str:
    found = re.findall(rf"\s--?{name.replace('-', '[-_]')}(?:=|\s+)(\S+)", command)
    return str(found[-1]) if found else NOT_GIVEN


@dataclass(frozen=True)
class ToldApart:
    """Ranks whose environment names another meeting place than that of the rest: `name` is the
    variable, `value` theirs, `common` that of the others. `sure`: both cannot be one place.
    """

    name: str
    value: str
    common: str
    ranks: tuple[int, ...]
    sure: bool


def ranks_told_apart(job: Job, hosts: Mapping[int, str]) -> ToldApart | None:
    """The fewest ranks of a job that were told another MASTER_ADDR or MASTER_PORT than the others;
    of two equal camps, that without rank 0. `hosts` are those of the ranks.
    """
    for name in PLACE:
        values = {
            int(who): value
            for who, told in job.environment.items()
            if who.isdecimal() and int(who) in hosts and (value := told.get(name))
        }
        own = hosts.get(0, "")  # where the store is, a rank may name it by any name
        camps: dict[str, list[int]] = {}
        for rank, value in sorted(values.items()):
            if not (own and hosts[rank] == own and is_loopback(value)):
                camps.setdefault(value, []).append(rank)
        if len(camps) < 2:
            continue
        ordered = sorted(camps.items(), key=lambda camp: (len(camp[1]), 0 in camp[1], camp[1]))
        (value, ranks), (common, _) = ordered[0], ordered[-1]
        return ToldApart(name, value, common, tuple(ranks), not _may_be_one(name, value, common))
    return None


def _may_be_one(name: str, one: str, other: str) -> bool:
    """Whether two addresses may be one host: a name and a number, or a name with its domain."""
    if name == "MASTER_PORT" or is_loopback(one) or is_loopback(other):
        return False
    if _is_number(one) != _is_number(other):
        return True
    return not _is_number(one) and (
        one.partition(".")[0].lower() == other.partition(".")[0].lower()
    )


def is_loopback(address: str) -> bool:
    return address in ("localhost", "::1") or address.startswith("127.")


def _is_number(address: str) -> bool:
    return re.fullmatch(r"[\d.]+|[\da-fA-F:]*:[\da-fA-F:.]*", address) is not None
