"""A job that was looked at on several hosts: its processes told apart by host, and what each
host saw of it put together.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainprobe.collect.collectors.cgroup import MemoryLimit
from trainprobe.collect.collectors.ports import PortCounters
from trainprobe.collect.collectors.pressure import Pressure
from trainprobe.collect.collectors.sockets import Connection
from trainprobe.facts.jobs import Job, JobRank
from trainprobe.facts.kernel_logs import OomKill, Segfault, Xid
from trainprobe.facts.remote_locks import with_remote_locks
from trainprobe.facts.resting_connections import LOOPBACK
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.model.pids import HostPid, names_a_pid
from trainprobe.model.record_classes import LazyData
from trainprobe.model.subjects import Subject

MOST_HOSTS = 1 << 20
KIND = "node.look"
TELLS_A_PART = (
    "job",
    "rank.ended",
    "process",
)  # kinds of which each host that has a part of a cell sends some
# What ssh and srun say of a host that is not to be reached at all, where a look that it merely
# refused would say why.
_UNREACHABLE = re.compile(
    r"timed out|No route to host|Host is down|Network is unreachable|Connection"
    r" (?:refused|reset|closed)|Unable to contact|Node failure|not responding|Communication"
    r" connection failure|Required node not available",
    re.IGNORECASE,
)
# What srun, a shell and the dynamic linker say where a program cannot begin: the node itself
# answers.
_CANNOT_START = re.compile(
    r"launch failed|Task launch for .{0,80} failed|execve\(\)|Exec format error|cannot execute|bad"
    r" interpreter|"
    r"required file not found|No such file or directory|(?:command )?not found|error while loading"
    r" shared libraries|No module named|"
    r"Python [\d.]+ or newer is needed|init_fs_encoding|Illegal instruction|ended with code 12[67]"
)
_GUESSED = frozenset({"start-order", "gpu-order", "only-process"})  # targets.numbers
_NAME = re.compile(r"[\w.:@-]{1,320}")
_PID_BITS = 32
_PLAIN = frozenset((str, int, float, bool, type(None)))


@dataclass(frozen=True)
class Reach(Fact):
    """How the nodes of a job were reached: `by` slurm, ssh or kubectl, `job` of SLURM, and the
    command that looks on all of them again.
    """

    by: str = ""
    job: str = ""
    command: str = ""
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SilentNode(Fact):
    """A node that did not look, with the sentence that says why. `late` where it gave no answer in
    time or is not to be reached; else it may well live.

    `unstarted` where the node was reached and nothing can be started there.
    """

    host: str = ""
    says: str = ""
    late: bool = False
    unstarted: bool = False


def parse_reach(record: Evidence) -> list[Fact]:
    data = record.data
    by, job, command = (fields.text(data, name) for name in ("by", "job", "command"))
    return [Reach((record.id,), record.cell, None, by, job, command, fields.texts(data, "nodes"))]


def silent_nodes(records: Iterable[Evidence]) -> list[Fact]:
    """Return the nodes that have given no answer; not those that answered that no process of the
    job is there.
    """
    return [
        SilentNode(
            (record.id,),
            record.cell,
            None,
            record.subject.host,
            record.reason,
            _late(record),
            _unstarted(record),
        )
        for record in records
        if record.kind == KIND
        and record.outcome not in ("ok", "partial")
        and _NAME.fullmatch(record.subject.host)
        and record.data.get("answered") is not True
    ]


def _late(record: Evidence) -> bool:
    return record.data.get("asked") is not False and (
        record.outcome == "timed_out" or _UNREACHABLE.search(record.reason) is not None
    )


def _unstarted(record: Evidence) -> bool:
    began = "host" in record.data or record.data.get("asked") is False
    return (
        record.outcome == "unavailable"
        and not began
        and _CANNOT_START.search(record.reason) is not None
    )


def places_of(records: Sequence[Evidence]) -> dict[str, int]:
    """Number the hosts from 1 whose pids must be told apart: processes of one cell are on more
    than one, or the look came from elsewhere.
    """
    hosts: dict[str, dict[str, None]] = {}
    for record in records:
        if record.kind in TELLS_A_PART and record.subject.host:
            hosts.setdefault(record.cell, {})[record.subject.host] = None
    reached = any(record.kind == "reach" for record in records)
    several = {host for found in hosts.values() if len(found) > 1 or reached for host in found}
    return {host: place for place, host in enumerate(sorted(several)[:MOST_HOSTS], 1)}


def facts_at(found: Sequence[Fact], host: str, places: Mapping[str, int]) -> list[Fact]:
    """The same for what was read of one host: counters of a host carry its name, and so do pids
    from a text, as from a line of the kernel's log.
    """
    return [_fact_at(fact, host, places[host]) for fact in found] if host in places else list(found)


def _fact_at(fact: Fact, host: str, place: int) -> Fact:
    if isinstance(fact, (MemoryLimit, PortCounters, Pressure)):
        return replace(fact, host=host)
    if isinstance(fact, (OomKill, Segfault, Xid)):
        return replace(fact, pid=_pid(fact.pid, host, place))
    return fact


def with_host(record: Evidence, places: Mapping[str, int]) -> Evidence:
    """The record with pids that carry their host, as it is where that is none of `places`."""
    subject, data = record.subject, record.data
    if subject.host not in places:
        return record
    wrap = pids_of(subject.host, places[subject.host])
    if isinstance(data, LazyData):
        data = data.whole(wrap)
    else:
        data = _rewritten(data, subject.host, places[subject.host], depth=0)
    if subject.pid is not None:
        subject = Subject(
            subject.kind,
            subject.host,
            subject.rank,
            wrap(subject.pid),
            subject.started_ticks,
            subject.gpu,
            subject.role,
            subject.extra,
        )
    # `replace` takes four times as long, and there are sixty records for each node
    return Evidence(
        record.id,
        record.kind,
        subject,
        record.cell,
        record.source,
        record.began,
        record.took_s,
        record.outcome,
        record.reason,
        data,
        record.files,
        record.redacted,
        record.schema,
        record.extra,
    )


def _rewritten(value: Any, host: str, place: int, *, depth: int) -> Any:
    """Every number that stands under a name of a pid gets its host."""
    if value.__class__ in _PLAIN or depth > 20:
        return value
    if isinstance(value, Mapping):
        return {
            key: (
                _pid(item, host, place)
                if _is_name_of_pid(key)
                else (
                    item
                    if item.__class__ in _PLAIN  # most of what a node sends
                    else _rewritten(item, host, place, depth=depth + 1)
                )
            )
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_rewritten(item, host, place, depth=depth + 1) for item in value]
    return value


_is_name_of_pid = functools.lru_cache(maxsize=4096)(names_a_pid)


def _pid(value: Any, host: str, place: int) -> Any:
    if isinstance(value, (list, tuple)):
        return [_pid(item, host, place) for item in value]
    plain = isinstance(value, int) and not isinstance(value, (bool, HostPid))
    return _host_pid(value, host, place) if plain and 0 < value < 1 << _PID_BITS else value


@functools.lru_cache(maxsize=4096)  # hosts of which one has connections to another
def pids_of(host: str, place: int) -> Callable[[Any], Any]:
    """What gives each pid of a host its host."""
    known: dict[int, Any] = {}

    def wrap(value: Any) -> Any:
        if value.__class__ is not int:
            return _pid(value, host, place)
        if value not in known:
            known[value] = _pid(value, host, place)
        return known[value]

    return wrap


# Each process stands in hundreds of records, above all as the end of connections.
_host_pid = functools.lru_cache(maxsize=65536)(HostPid)


def join_hosts(facts: list[Fact]) -> list[Fact]:
    """Make one Job of those that several hosts saw of one cell, and join the ends of connections
    between them. `facts` are changed.
    """
    jobs: dict[str, list[Job]] = {}
    for fact in facts:
        if isinstance(fact, Job):
            jobs.setdefault(fact.cell, []).append(fact)
    silent = tuple(fact for fact in facts if isinstance(fact, SilentNode))
    reach = next((fact for fact in facts if isinstance(fact, Reach)), Reach())
    parted = {
        cell: found
        for cell, found in jobs.items()
        if len({job.host for job in found}) > 1 or silent or reach.nodes
    }
    if not parted:
        return facts
    rest: list[Fact] = []
    told: set[str] = set()
    numbered = _with_numbers(facts, parted)
    for fact in numbered:
        if isinstance(fact, Job) and fact.cell in parted:
            if fact.cell not in told:
                told.add(fact.cell)
                ranks = [
                    one for one in numbered if isinstance(one, JobRank) and one.cell == fact.cell
                ]
                rest.append(_one_job(parted[fact.cell], ranks, reach, silent))
        else:
            rest.append(fact)
    del numbered
    facts[:] = rest  # a connection whose end is found needs no second place
    del rest
    return with_remote_locks(_joined_ends(facts, parted))


def renumbered(facts: Sequence[Fact]) -> dict[tuple[str, int], int]:
    """One host alone can only guess its ranks' numbers where nothing tells them, and may guess what
    another host knows. Where one process is left for the one number that nobody has, it is that.
    The numbers by cell and pid.
    """
    ranks_of: dict[str, list[JobRank]] = {}
    worlds: dict[str, int] = {}
    for fact in facts:
        if isinstance(fact, JobRank):
            ranks_of.setdefault(fact.cell, []).append(fact)
        elif isinstance(fact, Job):
            worlds[fact.cell] = max(worlds.get(fact.cell, 0), fact.world_size or 0)
    given: dict[tuple[str, int], int] = {}
    for cell, world in worlds.items():
        ranks = ranks_of.get(cell, [])
        guessed = [one for one in ranks if one.rank_source in _GUESSED]
        if len(guessed) != 1:
            continue
        known = {one.rank for one in ranks if one.rank_source not in _GUESSED}
        free = set(range(world)) - known
        if len(free) == 1 and guessed[0].rank in known:
            given[cell, guessed[0].pid] = free.pop()
    return given


def _with_numbers(facts: list[Fact], parted: Mapping[str, Sequence[Job]]) -> list[Fact]:
    given = {key: rank for key, rank in renumbered(facts).items() if key[0] in parted}
    if not given:
        return facts
    return [
        replace(fact, rank=given[fact.cell, pid])
        if fact.rank is not None
        and (pid := getattr(fact, "pid", None)) is not None
        and (fact.cell, pid) in given
        else fact
        for fact in facts
    ]


def _one_job(
    parts: Sequence[Job], ranks: Sequence[JobRank], reach: Reach, silent: Sequence[SilentNode]
) -> Job:
    """The part with the lowest rank speaks for the whole: its script, its launcher. Where all
    nodes were asked, who is missing is nowhere else.
    """
    claims: dict[int, dict[str, None]] = {}
    for one in ranks:
        if one.rank is not None:
            claims.setdefault(one.rank, {})[one.host] = None
    seen = {rank: next(iter(hosts)) for rank, hosts in claims.items()}
    first_host = seen[min(seen)] if seen else parts[0].host
    first = next((job for job in parts if job.host == first_host), parts[0])
    worlds = [
        job.world_size for job in parts if job.world_size and job.world_size_source != "start-order"
    ]
    world = max(worlds, default=None) or max(
        [*(rank + 1 for rank in seen), len(seen)], default=None
    )
    nodes = max((job.nnodes or 1 for job in parts), default=1)
    # Hosts that somebody listed need not be all; SLURM's list is. Of a node that refused to be
    # looked at nobody knows what runs there.
    listed = (
        reach.by in ("ssh", "kubectl")
        and all(job.nnodes is None for job in parts)
        and any(job.elsewhere for job in parts)
    )
    refused = bool(silent) and not any(one.late for one in silent)
    # While a process has no number, nobody can say which rank is absent.
    absent = (
        tuple(rank for rank in range(world or 0) if rank not in seen)
        if all(one.rank is not None for one in ranks)
        else ()
    )
    return replace(
        first,
        evidence=tuple(dict.fromkeys(id_ for job in parts for id_ in job.evidence)),
        world_size=world,
        nnodes=max(nodes, len(parts)),
        hosts=tuple(job.host for job in parts),
        absent=absent,
        elsewhere=bool(absent) and (nodes > max(len(parts), len(reach.nodes)) or listed or refused),
        claimed={rank: tuple(hosts) for rank, hosts in claims.items() if len(hosts) > 1},
        silent=tuple((one.host, one.says) for one in silent),
        others=tuple(one for job in parts for one in job.others),
        earlier_attempts=tuple(one for job in parts for one in job.earlier_attempts),
        leftovers=tuple(one for job in parts for one in job.leftovers),
        orphaned=tuple(pid for job in parts for pid in job.orphaned),
        environment={
            name: values
            for job in reversed([first, *(job for job in parts if job is not first)])
            for name, values in job.environment.items()
        },
    )


def _joined_ends(facts: list[Fact], cells: Mapping[str, object]) -> list[Fact]:
    """A TCP connection between two hosts is seen from both: each row names the process at its
    other end then. `facts` are changed.
    """
    ends: dict[str, dict[tuple[str, str], int]] = {cell: {} for cell in cells}
    for place, fact in enumerate(facts):
        if isinstance(fact, Connection) and fact.cell in cells and _leaves_its_host(fact):
            ends[fact.cell].setdefault((fact.local, fact.remote), place)
    # A table of all connections is the largest thing there is, so it is changed and not copied.
    for place, fact in enumerate(facts):
        if isinstance(fact, Connection) and not fact.peer_pid and _leaves_its_host(fact):
            other = ends.get(fact.cell, {}).get((fact.remote, fact.local))
            end = facts[other] if other is not None else None
            if isinstance(end, Connection):
                facts[place] = replace(fact, peer_pid=end.pid, peer_rank=end.rank)
    return facts


def _leaves_its_host(fact: Connection) -> bool:
    return fact.kind == "tcp" and not fact.local.startswith(LOOPBACK)
