"""Who is who among the processes of a cell: ranks, the launcher, loader workers, other children."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from trainprobe.collect import procfs
from trainprobe.collect.members import Member
from trainprobe.ladder.launch import Launch
from trainprobe.model.evidence import Ended
from trainprobe.system.child import Descendant
from trainprobe.system.keeper import Keeper
from trainprobe.targets.rank_search import LOADER_THREAD

SPAWN = "multiprocessing.spawn"


@dataclass(frozen=True)
class Mate:
    """One process of the cell, alive or ended."""

    member: Member
    ended: Ended | None
    started_at: float | None
    cmdline: str = ""

    @property
    def alive(self) -> bool:
        return self.ended is None

    @property
    def is_rank(self) -> bool:
        return self.member.role == "rank"


def team_of(
    launch: Launch, keeper: Keeper, witnessed: Mapping[int, int | None]
) -> tuple[Mate, ...]:
    """Return all processes, ranks first and in order. `witnessed` maps pids to the rank that their
    witness reported.
    """
    mates = []
    for spec in launch.specs:
        child = keeper.children[spec.key]
        role = "launcher" if launch.command else "rank"
        member = Member(spec.rank, child.pid or 0, role, child.started_ticks)
        mates.append(Mate(member, child.ended, child.started_at, " ".join(spec.argv)))
    below = keeper.descendants
    ranks = _ranks_below(below, witnessed, command=launch.command)
    if launch.command and not ranks and mates:
        ranks = _unnamed_ranks(below, launch.nproc, launch.first)
        if not ranks and _one_process(mates[0], below):
            mates = [
                replace(mate, member=replace(mate.member, rank=launch.first, role="rank"))
                for mate in mates
            ]
    rank_of = {mate.member.pid: mate.member.rank for mate in mates} | ranks
    for each in below.values():
        rank, role = ranks.get(each.pid), "rank"
        if rank is None:
            rank, role = _serves(each, below, rank_of), _role(each, below, mates)
        member = Member(rank, each.pid, role, each.started_ticks)
        mates.append(Mate(member, each.ended, each.seen_at or None, each.cmdline))
    return tuple(sorted(mates, key=_order))


def _order(mate: Mate) -> tuple[int, int, float, int]:
    member, place = mate.member, {"rank": 0, "launcher": 1, "loader-worker": 2}
    rank = member.rank if member.rank is not None else -1
    return place.get(member.role, 3), rank, mate.started_at or 0.0, member.pid


def _ranks_below(
    below: Mapping[int, Descendant], witnessed: Mapping[int, int | None], *, command: bool
) -> dict[int, int]:
    """Find the rank processes of a user's launcher. RANK is in their environment, and in that of
    all processes that they start.

    A rank is the topmost process with its RANK, or where that is a wrapper such as `bash` or
    `numactl`, the process below it that has a witness.
    """
    if not command:
        return {}
    tops: dict[int, int] = {}
    for each in below.values():
        if each.rank is None:
            continue
        parent = below.get(each.ppid)
        if parent is not None and (parent.rank == each.rank or _numbered_inside(each, parent)):
            continue
        tops[each.pid] = each.rank
    found: dict[int, int] = {}
    for pid, rank in tops.items():
        inner = (
            other.pid
            for other in below.values()
            if other.rank == rank and other.pid in witnessed and _is_below(other, pid, below)
        )
        wrapper = bool(witnessed) and pid not in witnessed
        found[next(inner, pid) if wrapper else pid] = rank
    return found


def _unnamed_ranks(below: Mapping[int, Descendant], nproc: int, first: int) -> dict[int, int]:
    """A script that spawns its ranks itself sets RANK inside Python, where it is not visible:
    number its spawned children in the order of their start.

    Their own children, such as the workers of a DataLoader, inherit RANK and so reveal it.
    """
    known = {
        each.ppid: each.rank
        for each in below.values()
        if each.rank is not None and each.ppid in below and _numbered_inside(each, below[each.ppid])
    }
    tops = [
        each
        for each in below.values()
        if SPAWN in each.cmdline and not (each.ppid in below and SPAWN in below[each.ppid].cmdline)
    ]
    if nproc < 2 or len(set(known.values())) < len(known):
        return {}
    if len(tops) != nproc or not set(known) <= {each.pid for each in tops}:
        return known if len(known) == nproc else {}
    free = iter(rank for rank in range(first, first + nproc) if rank not in known.values())
    in_turn = sorted(tops, key=lambda each: (each.started_ticks, each.pid))
    return {
        each.pid: known[each.pid] if each.pid in known else next(free, first) for each in in_turn
    }


def _numbered_inside(each: Descendant, parent: Descendant) -> bool:
    """Whether a spawned process inherits its RANK from a spawned parent that set it in Python."""
    return parent.rank is None and SPAWN in each.cmdline and SPAWN in parent.cmdline


def _one_process(launcher: Mate, below: Mapping[int, Descendant]) -> bool:
    """Whether the command starts no other Python and is itself the only rank."""
    return "python" in launcher.cmdline.split(" ")[0] or not any(
        "python" in each.cmdline.split(" ")[0] for each in below.values()
    )


def _is_below(each: Descendant, pid: int, below: Mapping[int, Descendant]) -> bool:
    for _ in range(64):
        if each.ppid == pid:
            return True
        parent = below.get(each.ppid)
        if parent is None:
            return False
        each = parent
    return False


def _serves(
    each: Descendant, below: Mapping[int, Descendant], rank_of: Mapping[int, int | None]
) -> int | None:
    """The rank that a process works for: that of its nearest ancestor that has one."""
    for _ in range(64):
        if each.ppid in rank_of:
            return rank_of[each.ppid]
        parent = below.get(each.ppid)
        if parent is None:
            return each.rank
        each = parent
    return None


def _role(each: Descendant, below: Mapping[int, Descendant], mates: list[Mate]) -> str:
    """Recognise a worker of a DataLoader by its thread's name; where torch sets none, as a fork of
    its parent or a spawned child of multiprocessing.
    """
    if "resource_tracker" in each.cmdline or "forkserver" in each.cmdline:
        return "child"
    if each.ended is None:
        now = procfs.stat(each.pid)
        if now is not None and now.name == LOADER_THREAD:
            return "loader-worker"
    parent = below.get(each.ppid)
    starters = (mate.cmdline for mate in mates if mate.member.pid == each.ppid)
    parents = parent.cmdline if parent is not None else next(starters, "")
    forked = bool(parents) and each.cmdline == parents
    return "loader-worker" if forked or SPAWN in each.cmdline else "child"
