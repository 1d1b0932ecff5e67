"""The processes around the ranks: workers, former attempts, leftovers, the container."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from trainprobe.targets.live_job import CMDLINE_CAP, Companion, Former
from trainprobe.targets.numbers import from_environment, own_number
from trainprobe.targets.process_table import ProcessRow, Table, in_order, once
from trainprobe.targets.programs import (
    ADOPTERS,
    is_compiler,
    is_helper,
    is_tool,
    launcher_kind,
    whole,
)
from trainprobe.targets.rank_search import (
    LOADER_THREAD,
    Team,
    is_fork_server,
    is_trainer,
    left_behind,
    multiprocessed,
    script_path,
    walk,
)

CONTAINER = re.compile(
    r"(docker|libpod|crio|cri-containerd|containerd|nerdctl|garden|lxc|kubepods"
    r"|buildkit)[^\s]*?[-/:]([0-9a-f]{12})[0-9a-f]{20,52}\b"
)


def companions(
    table: Table, team: Team, ranks: Mapping[int, int | None], skip: Sequence[int] = ()
) -> tuple[Companion, ...]:
    """Return all other processes of the job; a worker has the rank above it."""
    tops = [team.root] if team.root is not None and team.kind != "ray" else []
    orphans = left_behind(table, team)
    roots = [*tops, *team.agents, *team.ranks, *orphans]
    below: dict[int, list[int | None]] = {}
    for mine in (rank for rank in team.ranks if rank.pid in ranks):
        for above in table.ancestors(mine):
            below.setdefault(above.pid, []).append(ranks[mine.pid])
    found = []
    for process in walk(table, roots):
        if process.pid in ranks or process.pid in skip or process.pid == os.getpid():
            continue
        served = next((above for above in table.ancestors(process) if above.pid in ranks), None)
        served_by = below.get(process.pid, []) if served is None else []
        is_top = process is team.root or process in team.agents
        if served is not None:
            role, rank = role_of(table, process), ranks[served.pid]
        else:
            launches = served_by or is_top or launcher_kind(process.argv)
            role = "launcher" if launches else role_of(table, process)
            rank = served_by[0] if len(served_by) == 1 and not is_top else None
            rank = own_number(process).rank if process in orphans else rank
        companion = Companion(
            process.pid,
            process.started_ticks,
            role,
            rank,
            process.cmdline[:CMDLINE_CAP],
            process.ppid,
            served.pid if served is not None else None,
            role != "loader-worker" or process.name == LOADER_THREAD,
        )
        place = {"launcher": 0, "loader-worker": 1}.get(role, 2)
        order = (place, -1 if rank is None else rank, process.started_ticks, process.pid)
        found.append((order, companion))
    return tuple(companion for _, companion in sorted(found, key=lambda pair: pair[0]))


def role_of(table: Table, process: ProcessRow) -> str:
    """Return what a process below a rank is: loader-worker, compiler or child."""
    if is_compiler(process.argv, process.name):
        return "compiler"
    if process.name == LOADER_THREAD:
        return "loader-worker"
    above = table.parent(process)
    is_worker = (
        above is not None
        and not process.ended
        and not is_helper(process.argv)
        and not is_fork_server(process, above)
        and multiprocessed(process, above)
        and not _names_its_workers(table, above)
        and not is_compiler(above.argv, above.name)
        and above.name != LOADER_THREAD
    )
    return "loader-worker" if is_worker else "child"


@once
def _names_its_workers(table: Table, above: ProcessRow) -> bool:
    """Then torch names each of them, and who has no such name is none."""
    return any(child.name == LOADER_THREAD for child in table.children(above))


def attempt_of(process: ProcessRow) -> int | None:
    """Return the elastic restart count that it was started with."""
    return whole(process.environ.get("TORCHELASTIC_RESTART_COUNT", ""))


def former(table: Table, process: ProcessRow, attempt: int | None = None) -> Former:
    cmdline, age_s = process.cmdline[:CMDLINE_CAP], table.age_s(process)
    return Former(process.pid, process.started_ticks, cmdline, attempt, age_s)


def earlier(
    table: Table, team: Team, current: int | None, members: frozenset[int]
) -> tuple[ProcessRow, ...]:
    """Return survivors of former attempts: below the launcher, or orphaned with the same key."""
    if current is None or not team.ranks:
        return ()
    runs = {_run(rank) for rank in team.ranks if attempt_of(rank) == current}
    found = []
    for process in table.by_pid.values():
        if process.ended or not process.is_python or process.pid in members:
            continue
        attempt = attempt_of(process)
        if attempt is not None and attempt < current:
            launched = team.root is not None and team.root in table.ancestors(process)
            if launched or _run(process) in runs:
                found.append(process)
    return tuple(sorted(found, key=in_order))


def _run(process: ProcessRow) -> tuple[str, ...]:
    run = process.environ.get("TORCHELASTIC_RUN_ID", "")
    if run not in ("", "none"):
        return (run,)
    environ = process.environ
    return environ.get("MASTER_ADDR", ""), environ.get("MASTER_PORT", ""), process.cwd


def script_of(team: Team) -> str:
    """Return the path or module of the first rank that has one, else of the launcher."""
    paths = (script_path(each) for each in (*team.ranks, team.root) if each is not None)
    return next(filter(None, paths), "")


def leftovers(table: Table, team: Team, members: frozenset[int]) -> tuple[ProcessRow, ...]:
    """Return orphans of the same user and script outside the job, one a process group."""
    script = script_of(team)
    uids = {rank.uid for rank in team.ranks}
    if not script or not uids:
        return ()
    found: dict[int, ProcessRow] = {}
    for orphan in _orphans(table).get(script, ()):
        if orphan.pid not in members and orphan.uid in uids:
            found.setdefault(orphan.group, orphan)
    return tuple(found.values())


@once
def _orphans(table: Table) -> Mapping[str, Sequence[ProcessRow]]:
    """The programs of anybody whose parent is gone, by their script, in order of their start."""
    found: dict[str, list[ProcessRow]] = {}
    for process in sorted(table.by_pid.values(), key=in_order):
        if (
            not process.ended
            and is_trainer(process)
            and not is_tool(process.argv)
            and not launcher_kind(process.argv)
            and _orphaned(table, process)
        ):
            found.setdefault(script_path(process), []).append(process)
    return found


def _orphaned(table: Table, process: ProcessRow) -> bool:
    """Whether its parent is gone: init or another adopter has it."""
    if process.ppid == 0:
        return False  # started from outside of this pid namespace
    above = table.by_pid.get(process.ppid)
    if above is None:
        return process.ppid == 1
    if above.started_ticks > process.started_ticks:
        return False
    if above.pid != 1 and above.program not in ADOPTERS:
        return False
    if from_environment(process.environ).rank is not None:
        return True
    return not launcher_kind(above.argv) and process.session not in (above.session, process.pid)


def container_of(table: Table, process: ProcessRow) -> str:
    """Name its container if it is not ours: `docker 3f2a9c…`, `apptainer`, `namespace`."""
    match = CONTAINER.search(process.cgroup)
    own_folder = os.path.join(table.proc, "self")
    apart = len(process.nspid) > 1 or _other(process, "mnt", own_folder)
    if not apart:
        return ""
    if match:
        return f"{match.group(1)} {match.group(2)}"
    name = process.environ.get("APPTAINER_NAME") or process.environ.get("SINGULARITY_NAME")
    return f"apptainer {name}" if name else "namespace"


def _other(process: ProcessRow, kind: str, own_folder: str) -> bool:
    theirs = process.namespace(kind)
    try:
        return bool(theirs) and theirs != os.readlink(f"{own_folder}/ns/{kind}")
    except OSError:
        return False


def backend_and_device(table: Table, ranks: Sequence[ProcessRow]) -> tuple[str, str]:
    """Return (gloo or nccl, cpu or cuda) by a rank's threads and devices, or ""."""
    for rank in ranks:
        if not rank.thread_names:
            continue
        gpu = opens_gpu(table, rank)
        return rank.backend, "" if gpu is None else "cuda" if gpu else "cpu"
    return "", ""


def opens_gpu(table: Table, process: ProcessRow) -> bool | None:
    """Whether it holds an NVIDIA or AMD device open; None where that may not be seen."""
    folder = f"{table.proc}/{process.pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        if re.match(r"/dev/(?:nvidia\d|kfd\b)", target):
            return True
    return False
