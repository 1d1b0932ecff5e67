"""The training jobs that run here, and the one that a process belongs to, by /proc alone."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from trainprobe.errors import UsageError
from trainprobe.system.proc import read_file
from trainprobe.targets.environment import allowed
from trainprobe.targets.job_neighbours import (
    attempt_of,
    backend_and_device,
    companions,
    container_of,
    earlier,
    former,
    leftovers,
    script_of,
)
from trainprobe.targets.live_job import CMDLINE_CAP, Companion, LaunchedBy, LiveJob, LiveRank
from trainprobe.targets.numbering import ELASTIC, launched_shape, numbered, within
from trainprobe.targets.numbers import STRENGTH, Number, Shape, own_number, settle
from trainprobe.targets.process_table import ProcessRow, Table, in_order, snapshot
from trainprobe.targets.programs import is_ours, is_tool, launcher_kind, whole
from trainprobe.targets.rank_search import (
    Team,
    is_trainer,
    key_of,
    numbers_by_siblings,
    rank_environment,
    team_of,
    walk,
)
from trainprobe.targets.waiting_agents import fellow_agents

NODE = "SLURMD_NODENAME"  # SLURM tells each task on which of its nodes it is
MOST_LISTED = 20
SORTED_S = 20.0  # 3,000 processes take less than one

__all__ = ["LiveJob", "RankHint", "find_jobs", "job_of", "with_hints"]


@dataclass(frozen=True)
class RankHint:
    """A rank's number by a look inside; from environment, frame-locals, sockets, gpu-order."""

    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    source: str = "frame-locals"


def job_of(pid: int, proc: str = "/proc") -> LiveJob:
    """Return the job that process `pid` belongs to, as launcher, rank, worker or compiler. A thread
    id stands for its process.

    Raises UsageError, with what to do, where there is no such process or it belongs to no Python
    program.
    """
    table = _of_this_node(snapshot(proc), pid)
    process = table.by_pid.get(pid) or table.by_pid.get(_process_of_thread(pid, proc))
    if process is None and proc == "/proc" and _hidden(pid):
        raise UsageError(
            f"Process {pid} is hidden from us: /proc is mounted with hidepid.",
            "Attach as its owner or as root.",
        )
    if process is None:
        raise UsageError(
            f"There is no process {pid} on this host.",
            "List the training jobs with `trainprobe attach`, without a pid. Where the job has"
            " ended, `trainprobe explain LOG` says why.",
        )
    below = _jobs_below(table, process)
    if len(below) == 1:
        return replace(below[0], below=f"{process.program} {process.pid}")
    team = team_of(table, process)
    if team is None:
        if below:
            more = [f"and {len(below) - MOST_LISTED} more"] if below[MOST_LISTED:] else []
            raise UsageError(
                f"Process {pid} ({process.program}) is no training job; below it run {len(below)}.",
                f"Name one: trainprobe attach {below[0].pid}",
                [*(job.line for job in below[:MOST_LISTED]), *more],
            )
        raise UsageError(
            f"Process {pid} ({process.program}) is no training job and belongs to none.",
            "Give the pid of a Python process; `trainprobe attach` without a pid lists the training"
            " jobs.",
        )
    return _job(table, team)


def _jobs_below(table: Table, process: ProcessRow) -> tuple[LiveJob, ...]:
    """Return the jobs that a shell, `make` or another wrapper has started; none of a launcher,
    which is itself part of a job. Of a Python program that has no number of its own, those that a
    launcher below it has started: a sweep, or a script that also starts what the ranks talk to.
    """
    if process.ended or launcher_kind(process.argv):
        return ()
    below = [each for each in table.descendants(process) if each.is_python]
    if process.is_python:
        team = team_of(table, process)
        if team is None or team.kind != "single" or key_of(process) is not None:
            return ()
        below = [each for each in below if launcher_kind(each.argv)]
    return _jobs(table, below)


def find_jobs(
    proc: str = "/proc", uid: int | None = None, *, deadline_s: float = SORTED_S
) -> tuple[LiveJob, ...]:
    """Return the training jobs of user `uid` on this host, the newest first.

    For root those of all users. Raises UsageError past the deadline.

    A job is a known launcher with what it started, a process with a rank number, or a Python
    process that has libtorch in memory and is no tool such as pytest, a notebook server or this
    program.
    """
    until = time.monotonic() + deadline_s
    table = _of_this_node(snapshot(proc))
    uid = os.geteuid() if uid is None else uid
    candidates = [
        process
        for process in sorted(table.by_pid.values(), key=in_order)
        if process.argv
        and not process.ended
        and process.pid != os.getpid()
        and (is_trainer(process) or launcher_kind(process.argv))
        and uid in (0, process.uid)
    ]
    candidates.sort(key=lambda process: not launcher_kind(process.argv))
    return _jobs(table, candidates, until)


def _of_this_node(table: Table, pid: int = 0) -> Table:
    """Several nodes of SLURM may share a machine and its process table: on one of them, leave
    out the steps of the others. The node of `pid` counts first.
    """
    if not os.environ.get(NODE):
        return table

    def node(process: ProcessRow) -> str:
        """A title may have been written over its environment: then it is where its parent is."""
        return next(
            (
                name
                for each in (process, *table.ancestors(process))
                if (name := each.environ.get(NODE))
            ),
            "",
        )

    own_node = (node(table.by_pid[pid]) if pid in table.by_pid else "") or os.environ[NODE]
    others = {
        process.pid
        for process in table.by_pid.values()
        if process.is_python and node(process) not in ("", own_node)
    }
    return table.without(others) if others else table


def without(job: LiveJob, pids: Collection[int]) -> LiveJob:
    """Return `job` in which these processes, which passed for ranks, are the launcher's helpers."""
    helpers = [rank for rank in job.ranks if rank.pid in pids]
    if not helpers:
        return job
    companions = (
        Companion(one.pid, one.started_ticks, "child", None, one.cmdline, job.launcher.pid or 0)
        for one in helpers
    )
    counted = job.world_size_source == "start-order"
    return replace(
        job,
        ranks=tuple(rank for rank in job.ranks if rank.pid not in pids),
        others=(*job.others, *companions),
        world_size=None if counted else job.world_size,
    )


def with_hints(job: LiveJob, hints: Mapping[int, RankHint]) -> LiveJob:
    """Return `job` with what looks inside its processes told, by pid. A hint wins where its source
    is better than that of the number.

    A worker or child that turns out to have a rank becomes one; of two ranks with one number the
    better source stays.
    """
    if len(job.ranks) == 1 and job.ranks[0].rank_source == "only-process":
        job = _of_hinted_children(job, hints)
    ranks = job.ranks
    numbers = []
    for rank in ranks:
        number = Number(rank.rank, rank.local_rank, None, rank.rank_source)
        hint = hints.get(rank.pid)
        if hint is not None and number.source == "only-process" and (hint.world_size or 0) < 2:
            hint = None  # a local called rank proves little in a process that stands alone
        known = STRENGTH.get(number.source, 0) if number.rank is not None else 0
        if hint is not None and hint.rank is not None and STRENGTH.get(hint.source, 0) > known:
            local = hint.local_rank if hint.local_rank is not None else number.local_rank
            number = Number(hint.rank, local, None, hint.source)
        numbers.append(number)
    worlds = Counter(
        hint.world_size
        for pid, hint in hints.items()
        if within(hint.world_size) and any(rank.pid == pid for rank in ranks)
    )
    world, source = job.world_size, job.world_size_source
    if worlds and (world is None or STRENGTH.get(source, 0) < STRENGTH["frame-locals"]):
        world, source = worlds.most_common(1)[0][0], "frame-locals"
    if len(ranks) > 1 and (world is None or source == "start-order"):
        least = [number.rank + 1 for number in numbers if number.rank is not None]
        world, source = max(len(ranks), world or 0, *least), "start-order"
    numbers = list(settle(numbers, world, source))
    numbered = [
        replace(rank, rank=number.rank, rank_source=number.source, local_rank=number.local_rank)
        for rank, number in zip(ranks, numbers)
    ]
    return _finished(
        replace(job, ranks=tuple(numbered), world_size=world, world_size_source=source)
    )


def _of_hinted_children(job: LiveJob, hints: Mapping[int, RankHint]) -> LiveJob:
    """Return the job in which a seemingly only rank is the launcher of others."""
    numbered_pids = {
        other.pid
        for other in job.others
        if other.pid in hints
        and hints[other.pid].rank is not None
        and (other.role == "child" or not other.sure)
    }
    if not numbered_pids or len({hints[pid].rank for pid in numbered_pids}) < len(numbered_pids):
        return job
    top = job.ranks[0]
    mine = [
        other
        for other in job.others
        if other.pid in numbered_pids or (other.ppid == top.pid and not other.sure)
    ]
    ranks = tuple(
        LiveRank(process.pid, process.started_ticks, cmdline=process.cmdline, uid=top.uid)
        for process in mine
    )
    launcher = Companion(top.pid, top.started_ticks, "launcher", None, top.cmdline, 0)
    others = (launcher, *(replace(other, rank=None) for other in job.others if other not in mine))
    by = LaunchedBy("spawn", top.pid, top.started_ticks, top.cmdline)
    return replace(
        job, launcher=by, ranks=ranks, others=others, world_size=None, world_size_source=""
    )


def _jobs(
    table: Table, candidates: Sequence[ProcessRow], until: float = math.inf
) -> tuple[LiveJob, ...]:
    taken: set[int] = set()
    weighed: dict[int, Team] = {}  # by identity: processes of one family share their team
    alone: list[Team] = []
    found = []

    def add(team: Team) -> None:
        ranks = tuple(each for each in team.ranks if not _looks(each))
        if team.ranks and not ranks:
            return
        job = _job(table, replace(team, ranks=ranks))
        pids = {each.pid for each in job.members()} | {each.pid for each in job.earlier_attempts}
        if not pids & taken:
            found.append(job)
        taken.update(pids)

    for process in candidates:
        if time.monotonic() > until:  # a part of them could hide that there are two jobs
            says = f"The jobs among {len(table.by_pid)} processes were not found in time."
            raise UsageError(says, "Name one: trainprobe attach PID.")
        if process.pid in taken or is_tool(process.argv):
            continue
        team = team_of(table, process)
        if team is None or id(team) in weighed:
            continue
        weighed[id(team)] = team
        if not _is_training(team):
            continue
        if team.kind == "single":
            alone.append(team)
        else:
            add(team)
    # last: the ranks that such a program has started are a job of their own, and not parts of it
    for team in alone:
        if not any(rank.pid in taken for rank in team.ranks):
            add(team)
    return tuple(
        sorted(found, key=lambda job: (job.age_s if job.age_s is not None else 0.0, job.pid))
    )


def _looks(process: ProcessRow) -> bool:
    """Whether it is a look or a check of ours, which SLURM starts as it starts ranks."""
    return process.pid == os.getpid() or is_ours(process.argv)


def _is_training(team: Team) -> bool:
    """Whether a guess is good enough to be listed: launcher, number, or libtorch."""
    if team.kind in ELASTIC or team.kind in ("bare", "ray"):
        return True
    return any(key_of(rank) is not None or rank.maps_torch for rank in team.ranks)


def _has_all(numbers: Sequence[Number], world: int | None, shape: Shape) -> bool:
    """Whether all ranks that there can be on this host have a number of their own environment."""
    own = {number.rank for number in numbers if number.source == "environment"}
    here = shape.nproc or (world if shape.nnodes in (1, None) else None)
    return here is not None and len(own) >= here


def _hidden(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # asks only whether it is there
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _process_of_thread(tid: int, proc: str) -> int:
    for line in read_file(f"{proc}/{tid}/status", 4096).decode("utf-8", "replace").splitlines():
        if line.startswith("Tgid:"):
            return whole(line.partition(":")[2].strip()) or -1
    return -1


def _job(table: Table, team: Team) -> LiveJob:
    team, current = _latest_attempt(team)
    shape = launched_shape(team)
    if (shape.nnodes or 1) > 1:
        team = replace(team, agents=fellow_agents(table, team))
    by_pid = {rank.pid: rank for rank in team.ranks}
    environs = {rank.pid: rank_environment(table, rank, by_pid) for rank in team.ranks}
    own = [environs[rank.pid] for rank in team.ranks]
    numbers, world, source = numbered(team, own, shape, numbers_by_siblings(table))
    known = [not rank.ended or number.rank is not None for rank, number in zip(team.ranks, numbers)]
    if _has_all(numbers, world, shape):  # so what has no number is no rank: a server, a logger
        known = [number.rank is not None for number in numbers]
    if any(known) and not all(known):  # a zombie that nobody can number hides which rank is absent
        team = replace(team, ranks=tuple(compress(team.ranks, known)))
        numbers = list(compress(numbers, known))
    ranks = tuple(
        LiveRank(
            *(
                rank.pid,
                rank.started_ticks,
                number.rank,
                number.source,
                number.local_rank,
                rank.nspid,
                rank.uid,
                attempt_of(rank),
            ),
            cmdline=rank.cmdline[:CMDLINE_CAP],
            wait_status=rank.wait_status,
        )
        for rank, number in zip(team.ranks, numbers)
    )
    pids = {rank.pid: rank.rank for rank in ranks}
    old = earlier(table, team, current, frozenset(pids))
    others = companions(table, team, pids, [process.pid for process in old])
    members = frozenset(pids) | {other.pid for other in others} | {process.pid for process in old}
    first = min(team.ranks, key=lambda rank: rank.started_ticks, default=team.root)
    backend, device = backend_and_device(table, team.ranks)
    top = team.root
    job = LiveJob(
        launcher=LaunchedBy(
            team.kind,
            top.pid if top else None,
            top.started_ticks if top else None,
            top.cmdline[:CMDLINE_CAP] if top else "",
        ),
        ranks=ranks,
        others=others,
        world_size=world,
        world_size_source=source,
        host=os.uname().nodename,
        script=script_of(team),
        cwd=first.cwd if first else "",
        python=first.exe if first else "",
        began=table.began(first) if first else None,
        age_s=table.age_s(first) if first else None,
        attempt=current,
        nnodes=_nnodes(shape, list(environs.values())),
        earlier_attempts=tuple(former(table, process, attempt_of(process)) for process in old),
        leftovers=tuple(former(table, process) for process in leftovers(table, team, members)),
        container=container_of(table, first) if first else "",
        backend=backend,
        device=device,
        torch=_has_torch(table, team),
        environment=_environment(team, ranks, environs),
        orphaned=tuple(rank.pid for rank in team.ranks if _orphaned(table, rank)),
    )
    return _finished(job)


def _orphaned(table: Table, rank: ProcessRow) -> bool:
    """Whether torchrun has started it and is gone; who was started from outside of this pid
    namespace shows no parent.
    """
    return (
        not rank.ended
        and "TORCHELASTIC_RUN_ID" in rank.environ
        and rank.ppid in table.by_pid
        and not any(launcher_kind(above.argv) in ELASTIC for above in table.ancestors(rank))
    )


def _has_torch(table: Table, team: Team) -> bool | None:
    """Whether a seemingly single process, or one below it, has torch in memory."""
    if team.kind != "single" or any(own_number(rank).rank is not None for rank in team.ranks):
        return None
    found = [process.loads_torch for process in walk(table, team.ranks)]
    return True if True in found else None if None in found else False


def _finished(job: LiveJob) -> LiveJob:
    """Order the ranks and name the absent ones, if every rank has a number."""
    ranks = sorted(job.ranks, key=lambda rank: (rank.started_ticks, rank.pid))
    ranks.sort(key=lambda rank: (rank.rank is None, rank.rank or 0))
    pids = {rank.pid: rank.rank for rank in ranks}
    others = tuple(
        replace(other, rank=pids[other.rank_pid]) if other.rank_pid in pids else other
        for other in job.others
    )
    known = {rank.rank for rank in ranks}
    world = range(job.world_size or 0) if None not in known else ()
    absent = tuple(rank for rank in world if rank not in known)
    elsewhere = bool(absent) and _may_be_elsewhere(job)
    return replace(job, ranks=tuple(ranks), others=others, absent=absent, elsewhere=elsewhere)


def _may_be_elsewhere(job: LiveJob) -> bool:
    if job.nnodes is not None or job.world_size_source == "start-order":
        return (job.nnodes or 1) > 1
    addresses = {values.get("MASTER_ADDR", "") for values in job.environment.values()} - {""}
    return not addresses or not all(
        address in ("localhost", "::1") or address.startswith("127.") for address in addresses
    )


def _latest_attempt(team: Team) -> tuple[Team, int | None]:
    """Leave out ranks of former attempts, which still end or cannot."""
    attempts = {rank.pid: attempt_of(rank) for rank in team.ranks}
    known = [attempt for attempt in attempts.values() if attempt is not None]
    if not known:
        return team, None
    current = max(known)
    ranks = tuple(rank for rank in team.ranks if attempts[rank.pid] in (current, None))
    return replace(team, ranks=ranks), current


def _nnodes(shape: Shape, environs: Sequence[Mapping[str, str]]) -> int | None:
    """How many hosts: by the launcher, the sizes that the ranks were told, or SLURM."""
    if shape.nnodes is not None:
        return shape.nnodes
    for environ in environs:
        groups, world, local_world = (
            whole(environ.get(f"{name}WORLD_SIZE", "")) for name in ("GROUP_", "", "LOCAL_")
        )
        if groups:
            return groups
        if world and local_world and world % local_world == 0:
            return world // local_world
        nodes = whole(environ.get("SLURM_NNODES", ""))
        if nodes == 1 or (nodes and "SLURM_STEP_ID" in environ):
            return nodes
    return None


def _environment(
    team: Team, ranks: Sequence[LiveRank], environs: Mapping[int, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    found = {}
    if team.root is not None and team.kind != "ray":
        found["job"] = allowed(team.root.environ)
    for rank in ranks:
        name = str(rank.rank) if rank.rank is not None else f"pid {rank.pid}"
        found[name] = allowed(environs[rank.pid])
    return {name: values for name, values in found.items() if values}
