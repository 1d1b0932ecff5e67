"""In what the ranks of one live job differ: the versions that they have loaded, their backend,
settings that must agree, and the lines of their program. A difference is a fault where no job can
run with it, else a remark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainprobe.collect.collectors.libraries import RankLibraries
from trainprobe.collect.collectors.source import SourceSite
from trainprobe.facts import Facts, Job, JobRank
from trainprobe.model.node_names import folded
from trainprobe.waits.divergence import ranks_say

UNSET = "not set"
DEBUG = "TORCH_DISTRIBUTED_DEBUG"
DETAIL = "DETAIL"
COPY = "of sha256 "
SHOWN = 8  # characters of a digest
# By these each rank chooses transport, algorithm or size of its messages for itself.
_OF_NCCL = frozenset(
    f"NCCL_{name}"
    for name in [
        "ALGO",
        "PROTO",
        "NET",
        "NET_PLUGIN",
        "IB_DISABLE",
        "BUFFSIZE",
        "COLLNET_ENABLE",
        "NVLS_ENABLE",
    ]
)
INTERFACES = {"nccl": "NCCL_SOCKET_IFNAME", "gloo": "GLOO_SOCKET_IFNAME"}
_COMPARED = re.compile(r"(?:NCCL|GLOO|TORCH_NCCL|TORCH_GLOO)_\w+|TORCH_DISTRIBUTED_DEBUG")
# What is written where, and how much: a rank may rightly have its own.
_OWN = re.compile(r"\w+_(?:DEBUG\w*|\w*FILE\w*|\w*DUMP\w*|\w*LOG\w*|\w*TRACE\w*|\w*PIPE\w*|HOSTID)")
_MOST = 8


@dataclass(frozen=True)
class UnlikeRanks:
    """`ranks` on `hosts` have `value`, the others `common`; of two equal camps it is that without
    rank 0. An empty `common`: the value is wrong by itself. `fault`: no job can run so.
    """

    name: str
    value: str
    common: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    fault: bool
    evidence: tuple[str, ...]

    @property
    def of_source(self) -> bool:
        """Is it a line of the program, or a whole file of it?"""
        return ":" in self.name or self.of_file

    @property
    def of_file(self) -> bool:
        return self.value.startswith(COPY)

    @property
    def says(self) -> str:
        whose = ranks_say(self.ranks)
        where = f" on {folded(self.hosts)}" if self.hosts else ""
        has = "has" if len(self.ranks) == 1 else "have"
        rest = f", the others {self.common}" if self.common else ""
        joint = (
            "="
            if "_" in self.name and not self.of_source and not self.value.startswith("not ")
            else " "
        )
        return f"{whose[:1].upper()}{whose[1:]}{where} {has} {self.name}{joint}{self.value}{rest}"


def unlike_ranks(facts: Facts, job: Job) -> tuple[UnlikeRanks, ...]:
    """The differences, faults first; none where a value was not seen of two ranks."""
    hosts = {one.rank: one.host for one in facts.of(JobRank, cell=job.cell) if one.rank is not None}
    loaded = {
        one.rank: one
        for one in facts.of(RankLibraries, cell=job.cell)
        if one.rank is not None and one.rank in hosts
    }
    sites = facts.of(SourceSite, cell=job.cell)
    rows = [*_of_source(sites, hosts), *_of_libraries(loaded), *_of_settings(job, hosts, loaded)]
    found = [
        one
        for name, values, fault, seen in rows
        if (one := _camps(name, values, fault, hosts, seen))
    ]
    found += _interfaces(job, hosts, loaded)
    return tuple(sorted(found, key=lambda one: not one.fault)[:_MOST])


Row = tuple[str, Mapping[int, str], bool, tuple[str, ...]]


def _of_source(sites: Iterable[SourceSite], hosts: Mapping[int, str]) -> Iterable[Row]:
    """What the same line of the same file says on the hosts of ranks that stand there; where no
    line tells, whether the files of ranks that stand in them are the same.
    """
    lines: dict[tuple[str, int], dict[int, SourceSite]] = {}
    files: dict[str, dict[int, SourceSite]] = {}
    for site in sites:
        if site.rank is None or site.rank not in hosts:
            continue
        if site.text:
            lines.setdefault((site.file, site.line), {})[site.rank] = site
        if site.digest:
            files.setdefault(site.file, {})[site.rank] = site
    told = set()
    for (file, line), by_rank in lines.items():
        values = {rank: f"`{site.text.splitlines()[0][:60]}`" for rank, site in by_rank.items()}
        if len(set(values.values())) > 1:
            told.add(file)
            yield f"{os.path.basename(file)}:{line}", values, True, _seen(by_rank)
    for file, by_rank in files.items():
        if file not in told:
            copies = {rank: f"{COPY}{site.digest[:SHOWN]}" for rank, site in by_rank.items()}
            yield os.path.basename(file), copies, True, _seen(by_rank)


def _seen(sites: Mapping[int, SourceSite]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_ for one in sites.values() for id_ in one.evidence))


def _of_libraries(loaded: Mapping[int, RankLibraries]) -> Iterable[Row]:
    seen = tuple(dict.fromkeys(id_ for one in loaded.values() for id_ in one.evidence))
    backends = {rank: one.backend for rank, one in loaded.items() if one.backend}

    def values(name: str) -> dict[int, str]:
        return {rank: value for rank, one in loaded.items() if (value := getattr(one, name))}

    yield "torch", values("torch_version"), True, seen
    yield "NCCL", values("nccl_version"), "nccl" in backends.values(), seen
    yield "the backend", backends, True, seen
    yield "Python", values("python"), False, seen


def _of_settings(
    job: Job, hosts: Mapping[int, str], loaded: Mapping[int, RankLibraries]
) -> Iterable[Row]:
    told = {rank: job.environment[str(rank)] for rank in hosts if str(rank) in job.environment}
    of_nccl = any(one.backend == "nccl" for one in loaded.values())
    names = {name for values in told.values() for name in values if _COMPARED.fullmatch(name)}
    for name in sorted(names):
        values = {rank: row.get(name) or UNSET for rank, row in told.items()}
        if name == DEBUG:  # with DETAIL alone torch makes one more group, over all ranks
            values = {rank: _detail(value) for rank, value in values.items()}
        elif _OWN.fullmatch(name):
            continue
        fault = name == DEBUG or (of_nccl and name in _OF_NCCL)
        yield name, values, fault, job.evidence


def _detail(value: str) -> str:
    return DETAIL if value.upper() == DETAIL else f"not {DETAIL}"


def _camps(
    name: str,
    values: Mapping[int, str],
    fault: bool,
    hosts: Mapping[int, str],
    evidence: tuple[str, ...],
) -> UnlikeRanks | None:
    camps: dict[str, list[int]] = {}
    for rank, value in sorted(values.items()):
        camps.setdefault(value, []).append(rank)
    if len(camps) < 2:
        return None
    ordered = sorted(camps.items(), key=lambda camp: (len(camp[1]), 0 in camp[1], camp[1]))
    (value, ranks), (common, _) = ordered[0], ordered[-1]
    return UnlikeRanks(name, value, common, tuple(ranks), _of(hosts, ranks), fault, evidence)


def _interfaces(
    job: Job, hosts: Mapping[int, str], loaded: Mapping[int, RankLibraries]
) -> list[UnlikeRanks]:
    """Ranks that name interfaces which their host does not have, or, in a job over several hosts,
    loopback alone.
    """
    several = len(set(hosts.values())) > 1
    wrong: dict[tuple[str, str, str], list[int]] = {}
    for rank, one in sorted(loaded.items()):
        for backend, name in INTERFACES.items():
            value = job.environment.get(str(rank), {}).get(name, "")
            if not value or not one.interfaces or one.backend not in ("", backend):
                continue
            taken = _taken(value, one.interfaces, exact=backend == "gloo")
            if not taken:
                wrong.setdefault((name, value, "which is not there"), []).append(rank)
            elif several and set(taken) == {"lo"}:
                wrong.setdefault((name, value, "over which no other host comes"), []).append(rank)
    return [
        UnlikeRanks(
            name,
            f"{value}, {why}",
            "",
            tuple(ranks),
            _of(hosts, ranks),
            fault=True,
            evidence=(*job.evidence, *loaded[ranks[0]].evidence),
        )
        for (name, value, why), ranks in wrong.items()
    ]


def _taken(value: str, interfaces: Sequence[str], *, exact: bool) -> list[str]:
    """The interfaces that a list of names takes. Gloo's are whole names; NCCL's are the beginnings
    of names, whole ones after `=`, and after `^` those to leave out (its guide, Environment
    Variables).
    """
    but = not exact and value.startswith("^")
    whole = exact or value.lstrip("^").startswith("=")
    words = [word.strip().lstrip("^=") for word in value.split(",") if word.strip()]

    def named(interface: str) -> bool:
        return any(
            interface == word if whole else interface.startswith(word.partition(":")[0])
            for word in words
        )

    return [interface for interface in interfaces if named(interface) != but]


def _of(hosts: Mapping[int, str], ranks: Sequence[int]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(host for rank in ranks if (host := hosts[rank])))
