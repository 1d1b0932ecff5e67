"""From any process of a job to its launcher and to the processes that are its ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainprobe.targets.bare_runs import runs_of
from trainprobe.targets.ended_ranks import NAMES, SIBLING_TICKS, ended_siblings
from trainprobe.targets.numbers import Number, from_environment, own_number
from trainprobe.targets.process_table import ProcessRow, Table, in_order, once
from trainprobe.targets.programs import (
    ADOPTERS,
    SHELLS,
    is_compiler,
    is_forked_by_server,
    is_helper,
    is_spawned,
    is_tool,
    launcher_kind,
    program_of,
)
from trainprobe.targets.side_by_side import numbers_side_by_side

# the name that torch gives to the main thread of a DataLoader worker (2.6 and newer)
LOADER_THREAD = "pt_data_worker"
# Ray's own processes, named like actors: agents, and workers that wait for an actor.
RAY_SERVICES = frozenset({"ray::DashboardAgent", "ray::RuntimeEnvAgent", "ray::IDLE"})
DRIVER_THREAD = "gcs_client_io_s"  # of each program that has connected to Ray (2.60)
LOOPBACK = ("", "localhost", "::1", "0.0.0.0")  # noqa: S104 - compared, never bound


@dataclass(frozen=True)
class Team:
    """The processes of one job: `ranks` by start, unnumbered; `root` is what started them. `agents`
    are its further launchers here, where no rank has been started yet.
    """

    kind: str
    root: ProcessRow | None
    ranks: tuple[ProcessRow, ...]
    agents: tuple[ProcessRow, ...] = ()


def multiprocessed(process: ProcessRow, parent: ProcessRow | None) -> bool:
    """Whether Python's multiprocessing made it: spawned, served or forked."""
    if is_spawned(process.argv) or is_forked_by_server(process.argv):
        return True
    return (
        parent is not None
        and bool(process.argv)
        and process.argv == parent.argv
        and process.started_ticks > parent.started_ticks
    )


@once
def is_trainer(process: ProcessRow) -> bool:
    """Whether it may be a rank: a Python that is no helper and no compile worker."""
    if process.ended:
        return process.name.startswith(NAMES)
    return (
        process.is_python
        and not is_helper(process.argv)
        and not is_compiler(process.argv, process.name)
    )


def below_launcher(table: Table, launcher: ProcessRow) -> list[ProcessRow]:
    """Return the ranks below a launcher, past shells, profilers and more launchers."""
    found: list[ProcessRow] = []
    for child in table.children(launcher):
        if launcher_kind(child.argv) or is_fork_server(child, launcher):
            found += below_launcher(table, child)
        elif is_trainer(child) and child.argv != launcher.argv:
            found.append(_behind_wrapper(table, child))
        elif not is_trainer(child) and not is_helper(child.argv) and not child.ended:
            found += below_launcher(table, child)
        elif (
            child.argv == launcher.argv
            and multiprocessed(child, launcher)
            and child.name != LOADER_THREAD
        ):
            found.append(child)  # a launcher inside Python, such as notebook_launcher, forks
    return sorted(found, key=in_order)


def _behind_wrapper(table: Table, process: ProcessRow) -> ProcessRow:
    """Return the training that a wrapper in Python (a tracer, a watchdog) starts."""
    for _ in range(4):
        kids = [
            kid
            for kid in table.children(process)
            if kid.is_python
            and is_trainer(kid)
            and not kid.ended
            and not multiprocessed(kid, process)
            and not is_tool(kid.argv)
        ]
        if (
            len(kids) != 1
            or own_number(kids[0]) != own_number(process)
            or program_of(kids[0].argv).kind not in ("script", "module")
            or process.maps_torch
        ):
            return _forked_rank(table, process)
        process = kids[0]
    return process


def _forked_rank(table: Table, process: ProcessRow) -> ProcessRow:
    """Return the child that trains in place of `process`: the only one that has made a process
    group, where `process` has forked it and made none.
    """
    if not table.children(process) or process.backend:
        return process
    kids = [
        kid
        for kid in table.children(process)
        if not kid.ended and kid.argv == process.argv and kid.backend
    ]
    same = len(kids) == 1 and own_number(kids[0]) == own_number(process)
    return kids[0] if same else process


def is_fork_server(process: ProcessRow, parent: ProcessRow) -> bool:
    return is_forked_by_server(process.argv) and not is_forked_by_server(parent.argv)


@once
def spawned_ranks(table: Table, top: ProcessRow) -> list[ProcessRow]:
    """Return the children of `top` that are ranks and not workers: numbered apart, or talking TCP
    among themselves, or given an address.

    A DataLoader worker names its main thread (torch 2.6), never talks to its siblings and finds no
    MASTER_ADDR that its parent has not.
    """
    kids: list[ProcessRow] = []
    for kid in table.children(top):
        kids += table.children(kid) if is_fork_server(kid, top) else [kid]
    own = own_number(top)
    trainers = [kid for kid in kids if is_trainer(kid) and not kid.ended]
    kids = [kid for kid in trainers if multiprocessed(kid, top) or same_program(kid, top)]
    if not kids and not top.backend:
        return _of_another_program(trainers, own) or _numbered_copies(table, top, trainers)
    others = [kid for kid in kids if kid.name != LOADER_THREAD]
    numbered = [kid for kid in others if _apart(kid, own)]
    if numbered or len(others) < len(kids) or _is_one_of_several(table, top):
        return _made_alike(numbered)
    kids = [kid for kid in kids if multiprocessed(kid, top) or (top.backend and kid.backend)]
    kids = _made_alike(kids)
    if kids and _has_own_address(kids[0], top):
        return kids
    return kids if _talk(table, kids, top) else []


def _made_alike(kids: Sequence[ProcessRow]) -> list[ProcessRow]:
    """Of spawned and forked children those of the kind that has made process groups: ranks are
    started in one way, and a server or a writer beside them may have been in the other.
    """
    spawned = [kid for kid in kids if is_spawned(kid.argv)]
    forked = [kid for kid in kids if not is_spawned(kid.argv)]
    for kind, other in ((spawned, forked), (forked, spawned)):
        if any(kid.backend for kid in kind) and not any(kid.backend for kid in other):
            return kind
    return list(kids)


def _of_another_program(kids: Sequence[ProcessRow], own: Number) -> list[ProcessRow]:
    """The ranks of a launcher that was written for the job: children that run one script and were
    numbered apart from it; a helper that inherited its number runs another.
    """
    numbered = [kid for kid in kids if from_environment(kid.environ).rank is not None]
    first = next((kid for kid in numbered if _apart(kid, own)), None)
    return [] if first is None else [kid for kid in numbered if same_program(kid, first)]


def _numbered_copies(table: Table, top: ProcessRow, kids: Sequence[ProcessRow]) -> list[ProcessRow]:
    """The same where the number has a name of its own; so may that of a rank's workers."""
    if own_number(top).rank is not None or top.maps_torch:
        return []
    together = (_started_together(table).get(kid.pid) for kid in kids)
    team = next((each for each in together if each is not None), None)
    return [] if team is None else [kid for kid in kids if kid in team.ranks]


def _is_one_of_several(table: Table, process: ProcessRow) -> bool:
    """Whether it carries the number of one rank beside others of its job: what such a one spawns
    without a number, as a process that writes its checkpoints, is no rank.
    """
    key = key_of(process)
    below = {each.pid for each in table.descendants(process)}
    return key is not None and any(
        own_number(other).rank != own_number(process).rank and other.pid not in below
        for other in _by_key(table).get(key, ())
    )


def _apart(kid: ProcessRow, own: Number) -> bool:
    """Whether a child got a number of its own from its parent."""
    number = from_environment(kid.environ)
    mine = number.rank if number.rank is not None else number.local_rank
    return mine is not None and mine not in (own.rank, own.local_rank)


def _has_own_address(kid: ProcessRow, top: ProcessRow) -> bool:
    return (
        "MASTER_PORT" in kid.environ
        and "MASTER_PORT" not in top.environ
        and "RANK" not in kid.environ
    )


def _talk(table: Table, kids: Sequence[ProcessRow], top: ProcessRow) -> bool:
    """Whether a child has a TCP connection to a sibling, to the parent, or to itself (a store)."""
    ends = [table.tcp_ends(kid, kid.sockets - top.sockets) for kid in kids]
    local = {near for pairs in (*ends, table.tcp_ends(top, top.sockets)) for near, _ in pairs}
    return any(remote in local for pairs in ends for _, remote in pairs)


def same_program(process: ProcessRow, other: ProcessRow) -> bool:
    """Whether both run the same script or module (Lightning starts its further ranks as the same
    command once more, by its absolute path).

    A relative path counts from the process's own folder; one that has changed folders since it
    started still names the end of the path.
    """
    mine, its = program_of(process.argv), program_of(other.argv)
    if mine.kind != its.kind or mine.kind not in ("script", "module"):
        return False
    if mine.kind == "module":
        return mine.name.removesuffix(".__main__") == its.name.removesuffix(".__main__")
    if _path(mine.name, process.cwd) == _path(its.name, other.cwd):
        return True
    return os.path.isabs(mine.name) != os.path.isabs(its.name) and any(
        _path(long, "").endswith("/" + os.path.normpath(short))
        for long, short in ((mine.name, its.name), (its.name, mine.name))
        if os.path.isabs(long)
    )


def team_of(table: Table, process: ProcessRow) -> Team | None:
    """Return the job of any of its processes; None for a process of none."""
    chain = [process, *table.ancestors(process)]
    kinds = [launcher_kind(each.argv) for each in chain]
    launchers = [(kind, each) for kind, each in zip(kinds, chain) if kind not in ("", "ray")]
    closer = [pair for pair in launchers if pair[0] != "slurm"]
    if closer or launchers:
        outer_kind, root = (closer or launchers)[-1]
        if outer_kind != "slurm" or _are_tasks(table, root):
            kind = next((kind for kind, _ in closer or launchers if kind != "mpirun"), outer_kind)
            inner = _launchers_below(table, root)
            return _launched(
                table, inner[0] if kind in ("mpirun", "slurm") and inner else kind, root
            )
    worker = next((each for each in (*chain, *_actors(table, process)) if _is_ray(each)), None)
    if worker is not None:
        return _of_ray(table, worker)
    if process.ended:
        return _of_zombie(table, process)
    top = _top(table, chain) if not _starts_jobs(table, process) else None
    if top is None:
        return None
    # below a step of a scheduler: a launcher that has started no rank yet
    return team_of(table, top) if launcher_kind(top.argv) else _of_top(table, top)


@once
def _launchers_below(table: Table, root: ProcessRow) -> list[str]:
    """The kinds of the launchers that start ranks on this host, nearest first."""
    return [
        kind
        for each in table.descendants(root)
        if (kind := launcher_kind(each.argv)) not in ("", "ray", "mpirun", "slurm")
    ]


def _launched(table: Table, kind: str, root: ProcessRow) -> Team:
    """The job of a launcher, under the name of the nearest one."""
    known: dict[tuple[str, int], Team] = table.__dict__.setdefault("_launched", {})
    if (kind, root.pid) not in known:
        ranks = _told_their_rank(below_launcher(table, root))
        known[kind, root.pid] = with_same_key(table, Team(kind, root, tuple(ranks)))
    return known[kind, root.pid]


def _told_their_rank(found: Sequence[ProcessRow]) -> Sequence[ProcessRow]:
    """Without those whose environment names no rank, where that of others does: a script may have
    started a server of its own before it became the launcher.
    """
    if not any(from_environment(each.environ).rank is not None for each in found):
        return found
    return [
        each
        for each in found
        if each.ended or not each.environ or from_environment(each.environ).rank is not None
    ]


@once
def _of_top(table: Table, top: ProcessRow) -> Team:
    """The job of the program that a single one begins with."""
    ranks = spawned_ranks(table, top)
    if ranks:
        return _of_spawn(table, top, [*ranks, *ended_siblings(table, ranks)])
    together = _started_together(table).get(top.pid)
    if together is not None:
        return together
    if key_of(top) is not None:
        return with_same_key(table, Team("bare", None, (top,)))
    numbered = _numbered_sibling(table, top)
    if numbered is not None:
        return with_same_key(table, Team("bare", None, (numbered,)))
    return _orphans(table, top) or Team("single", None, (top,))


@once
def _started_together(table: Table) -> Mapping[int, Team]:
    """The teams of copies that were started side by side, by pid."""
    found = {}
    for numbers in _side_by_side(table):
        ranks = sorted((table.by_pid[pid] for pid in numbers), key=in_order)
        team = Team(
            "bare", None, tuple(sorted((*ranks, *ended_siblings(table, ranks)), key=in_order))
        )
        found.update(dict.fromkeys(numbers, team))
    return found


def numbers_by_siblings(table: Table) -> Mapping[int, Number]:
    """The numbers, by pid, that only the siblings of a process show to be such."""
    return {pid: number for team in _side_by_side(table) for pid, number in team.items()}


@once
def _side_by_side(table: Table) -> list[dict[int, Number]]:
    """Copies of one command among those that have no number to be known by, or are alone with it
    at their address.
    """
    alone = [each[0] for each in _by_key(table).values() if len(each) == 1]
    keyed = [
        each for each in alone if own_number(each).world_size != 1 and not _carries_on(table, each)
    ]
    without = [
        each
        for each in _candidates(table)
        if key_of(each) is None and not multiprocessed(each, table.parent(each))
    ]
    return numbers_side_by_side(table, [*keyed, *without])


def _of_zombie(table: Table, process: ProcessRow) -> Team | None:
    """The job of a zombie is that of the rank above it, or of its siblings."""
    above = table.parent(process)
    if (
        above is not None
        and not above.ended
        and is_trainer(above)
        and not is_tool(above.argv)
        and (key_of(above) is not None or spawned_ranks(table, above))
    ):
        return team_of(table, above)
    sibling = _numbered_sibling(table, process)
    if sibling is not None:
        return with_same_key(table, Team("bare", None, (sibling,)))
    return Team("single", None, (process,)) if is_trainer(process) else None


def _numbered_sibling(table: Table, process: ProcessRow) -> ProcessRow | None:
    """A rank that an unnumbered program started; for a zombie, a sibling rank."""
    above = table.parent(process) if process.ended else process
    return _only_rank_below(table, above) if above is not None else None


@once
def _only_rank_below(table: Table, above: ProcessRow) -> ProcessRow | None:
    """A rank among the children of `above`, where those that are ranks belong to one job."""
    ranks = [kid for kid in table.children(above) if key_of(kid) is not None and is_trainer(kid)]
    return ranks[0] if ranks and len({key_of(kid) for kid in ranks}) == 1 else None


@once
def _are_tasks(table: Table, root: ProcessRow) -> bool:
    """Whether srun started those below, one rank each, and none of them spawns ranks."""
    ranks = below_launcher(table, root)
    return any(own_number(rank).rank is not None for rank in ranks) and not any(
        spawned_ranks(table, rank) for rank in ranks
    )


def _top(table: Table, chain: Sequence[ProcessRow]) -> ProcessRow | None:
    """The process that a single job begins with: the topmost Python of the same program."""
    first = next((place for place, each in enumerate(chain) if is_trainer(each)), None)
    if first is None or (
        first > 0 and is_tool(chain[first].argv) and not is_compiler(chain[0].argv, chain[0].name)
    ):
        return _only_python_below(table, chain[0])
    top = chain[first]
    for above in chain[first + 1 :]:
        if not is_trainer(above) or is_tool(above.argv):
            break
        if not (
            is_forked_by_server(above.argv)
            or multiprocessed(top, above)
            or same_program(top, above)
            or _same_number(top, above)
        ):
            break
        top = above
    return top


def _same_number(process: ProcessRow, above: ProcessRow) -> bool:
    number = from_environment(process.environ)
    return number.rank is not None and number == from_environment(above.environ)


@once
def _starts_jobs(table: Table, process: ProcessRow) -> bool:
    """Whether it is a shell that has started Python programs: it stands for none of them."""
    return _is_shell(process) and any(
        is_trainer(each) and not each.ended for each in table.descendants(process)
    )


def _is_shell(process: ProcessRow) -> bool:
    return process.program.lstrip("-").partition(":")[0] in SHELLS


def _only_python_below(table: Table, process: ProcessRow) -> ProcessRow | None:
    """The one program below a wrapper such as nsys; None for a shell or an init."""
    if _is_shell(process):
        return None
    found = [each for each in table.descendants(process) if is_trainer(each) and not each.ended]
    below = {each.pid for top in found[:1] for each in table.descendants(top)}
    return found[0] if found and all(each.pid in below for each in found[1:]) else None


def _of_spawn(table: Table, top: ProcessRow, ranks: Sequence[ProcessRow]) -> Team:
    """Ranks that a Python program spawned; it is one itself where it has made a process group, and
    rank 0 where only that is missing.
    """
    if top.backend and not top.ended:
        return with_same_key(table, Team("spawn", top, (top, *sorted(ranks, key=in_order))))
    alive = [kid for kid in ranks if not kid.ended]
    numbers = [from_environment(kid.environ) for kid in alive]
    places = [number.local_rank if number.rank is None else number.rank for number in numbers]
    if (
        alive
        and all(place is not None for place in places)
        and 0 not in places
        and all(same_program(kid, top) for kid in alive)
    ):
        return with_same_key(table, Team("spawn", top, (top, *ranks)))
    return with_same_key(table, Team("spawn", top, tuple(sorted(ranks, key=in_order))))


def _orphans(table: Table, process: ProcessRow) -> Team | None:
    """Spawned ranks whose launcher is gone: siblings of one process group."""
    return (
        _lost_teams(table).get((process.group, process.ppid)) if is_spawned(process.argv) else None
    )


@once
def _lost_teams(table: Table) -> Mapping[tuple[int, int], Team]:
    """Those that multiprocessing has made, by their process group and their parent."""
    found: dict[tuple[int, int], list[ProcessRow]] = {}
    for each in sorted(table.by_pid.values(), key=in_order):
        if multiprocessed(each, None) and is_trainer(each):
            found.setdefault((each.group, each.ppid), []).append(each)
    return {shared: Team("spawn", None, tuple(each)) for shared, each in found.items()}


def _is_ray(process: ProcessRow) -> bool:
    return (
        bool(process.argv)
        and process.argv[0].startswith("ray::")
        and _actor(process) not in RAY_SERVICES
    )


def _actor(process: ProcessRow) -> str:
    """Its class, of `ray::Trainer.fit` as of an idle `ray::Trainer`."""
    return re.split(r"[.(]|__", process.argv[0], maxsplit=1)[0]


def _actors(table: Table, process: ProcessRow) -> Sequence[ProcessRow]:
    """The actors that train below a raylet, or for the program that drives them: those with a
    process group, else with torch in memory or a name that says so. A driver only waits for them.
    """
    if launcher_kind(process.argv) == "ray":
        raylets = [process]
    elif process.is_python and not process.backend and DRIVER_THREAD in process.thread_names:
        everywhere = [
            each
            for each in table.by_pid.values()
            if launcher_kind(each.argv) == "ray" and each.uid == process.uid and not each.ended
        ]
        raylets = [each for each in everywhere if each.ppid == process.pid] or everywhere
    else:
        return ()
    actors = [each for raylet in raylets for each in table.children(raylet) if _is_ray(each)]
    return [each for each in actors if each.backend] or [
        each for each in actors if "Train" in each.argv[0] or each.maps_torch
    ]


def _of_ray(table: Table, worker: ProcessRow) -> Team:
    """Ray actors below one raylet, which hide RANK and environment: those of one class, and those
    of others that have a process group as it has.
    """
    mine = [
        each
        for each in table.by_pid.values()
        if _is_ray(each)
        and each.ppid == worker.ppid
        and (_actor(each) == _actor(worker) or (worker.backend and each.backend))
    ]
    above = table.parent(worker)
    return Team(
        "ray",
        above if above is not None and launcher_kind(above.argv) == "ray" else None,
        tuple(sorted(mine, key=in_order)),
    )


@once
def key_of(process: ProcessRow) -> tuple[str, ...] | None:
    """The address or script that a job's ranks have in common; None for no rank."""
    number = own_number(process)
    if number.rank is None and not (
        number.local_rank is not None and number.world_size is not None
    ):
        return None
    environ = process.environ
    arguments = program_of(process.argv).rest
    address = environ.get("MASTER_ADDR", "")
    port = environ.get("MASTER_PORT", "")
    if port:
        space = (
            process.namespace("net") if address in LOOPBACK or address.startswith("127.") else ""
        )
        return "address", address, port, space
    return (
        "script",
        _path(program_of(process.argv).name, process.cwd),
        process.cwd,
        str(process.session),
        str(number.world_size),
        str(len(arguments)),
    )


def script_path(process: ProcessRow) -> str:
    """Return the absolute path of its script, the name of its module, or an empty string."""
    program = program_of(process.argv)
    if launcher_kind(process.argv):
        named = next(
            (word for word in program.rest if word.endswith(".py") and not word.startswith("-")), ""
        )
        return _path(named, process.cwd)
    if program.kind == "module":
        return f"-m {program.name}"
    return _path(program.name, process.cwd) if program.kind == "script" else ""


def _path(name: str, cwd: str) -> str:
    return os.path.normpath(os.path.join(cwd or "/", name)) if name and cwd else name


def with_same_key(table: Table, team: Team) -> Team:
    """Add the job's ranks from elsewhere on this host: bare, or another launcher's."""
    known = [each for each in team.ranks if not each.ended]
    keys = {key for key in (key_of(each) for each in known) if key is not None}
    mine = {each.pid for each in team.ranks}
    claimed = {own_number(each).rank for each in known}
    uids = {each.uid for each in known}
    sizes = {own_number(each).world_size for each in known}
    started = {(each.ppid, each.group, each.session) for each in known if each.ppid > 1}
    # Who has no children and answers alike gets the same runs, of which it is in one.
    teams: dict[object, Team] = table.__dict__.setdefault("_bare_teams", {})
    alone = (
        team.kind == "bare" and len(known) == len(team.ranks) == 1 and not table.children(known[0])
    )
    alike = tuple(
        frozenset(values)
        for values in (keys, uids, sizes, started if keys & _of_several_sizes(table) else ())
    )
    if alone and (known[0].pid, alike) in teams:
        return teams[known[0].pid, alike]
    found: list[ProcessRow] = []
    for process in (each for key in sorted(keys) for each in _by_key(table).get(key, ())):
        if process.pid in mine or process.uid not in uids or _carries_on(table, process):
            continue
        if outlives_its_rank(table, process):
            continue
        above = list(table.ancestors(process))
        if any(each.pid in mine for each in above):
            continue
        launched = any(launcher_kind(each.argv) not in ("", "slurm", "ray") for each in above)
        if (
            launched
            if team.kind == "bare"
            else (not launched or own_number(process).rank in claimed)
        ):
            continue
        # An odd size among processes that were started together is a fault of the launch.
        if (
            own_number(process).world_size not in sizes
            and (process.ppid, process.group, process.session) not in started
        ):
            continue
        found.append(_behind_wrapper(table, process))
    if team.kind != "bare":
        return Team(team.kind, team.root, tuple(sorted((*team.ranks, *found), key=in_order)))
    runs = runs_of([*team.ranks, *found])
    mine_is = next(run for run in runs if any(process is team.ranks[0] for process in run))
    for run in runs if alone else [mine_is]:
        made = Team(
            team.kind, team.root, tuple(sorted((*run, *ended_siblings(table, run)), key=in_order))
        )
        teams.update({(process.pid, alike): made for process in run if alone})
        team = made if run is mine_is else team
    return team


@once
def _of_several_sizes(table: Table) -> frozenset[tuple[str, ...]]:
    """The keys of which processes were told different world sizes."""
    return frozenset(
        key
        for key, each in _by_key(table).items()
        if len({own_number(process).world_size for process in each}) > 1
    )


@once
def _by_key(table: Table) -> Mapping[tuple[str, ...], Sequence[ProcessRow]]:
    """The processes that carry a number, by the key of their job."""
    found: dict[tuple[str, ...], list[ProcessRow]] = {}
    for process in _candidates(table):
        key = key_of(process)
        if key is not None:
            found.setdefault(key, []).append(process)
    return found


@once
def _candidates(table: Table) -> list[ProcessRow]:
    """Programs that may be ranks by themselves: a worker whose rank is gone still carries its
    number.
    """
    return [
        process
        for process in table.by_pid.values()
        if not process.ended
        and is_trainer(process)
        and not is_tool(process.argv)
        and not launcher_kind(process.argv)
        and process.name != LOADER_THREAD
        and not is_spawned(process.argv)
    ]


def _carries_on(table: Table, process: ProcessRow) -> bool:
    """Whether it only inherited the number of the rank above it, as a worker does."""
    above = table.parent(process)
    return (
        above is not None
        and is_trainer(above)
        and not launcher_kind(above.argv)
        and key_of(above) == key_of(process)
        and own_number(above) == own_number(process)
    )


def outlives_its_rank(table: Table, process: ProcessRow) -> bool:
    """Whether a rank that is gone has forked it: it carries the number of a rank, has made no
    process group as the others have, is younger than they are, and their parent is not its own.
    """
    key, above = key_of(process), table.parent(process)
    adopted = above is None or above.pid == 1 or above.program in ADOPTERS
    if key is None or process.backend or not adopted:
        return False
    ranks = _with_groups(table).get(key)
    return (
        ranks is not None
        and ranks.latest + SIBLING_TICKS < process.started_ticks
        and process.ppid not in ranks.parents
        and own_number(process).rank not in ranks.numbers
    )


@dataclass(frozen=True)
class _WithGroups:
    """Processes of one job that have made a process group; `latest` is when the last one began."""

    latest: int
    parents: frozenset[int]
    numbers: frozenset[int | None]


@once
def _with_groups(table: Table) -> Mapping[tuple[str, ...], _WithGroups]:
    found = {}
    for key, processes in _by_key(table).items():
        made = [each for each in processes if each.backend]
        if made:
            found[key] = _WithGroups(
                max(each.started_ticks for each in made),
                frozenset(each.ppid for each in made),
                frozenset(own_number(each).rank for each in made),
            )
    return found


def left_behind(table: Table, team: Team) -> list[ProcessRow]:
    """Children of ranks of this job that are gone themselves."""
    keys = dict.fromkeys(key for rank in team.ranks if (key := key_of(rank)) is not None)
    return [process for key in keys for process in _outliving(table).get(key, ())]


@once
def _outliving(table: Table) -> Mapping[tuple[str, ...], Sequence[ProcessRow]]:
    found = {
        key: [each for each in processes if outlives_its_rank(table, each)]
        for key, processes in _by_key(table).items()
    }
    return {key: processes for key, processes in found.items() if processes}


def walk(table: Table, roots: Sequence[ProcessRow]) -> Iterator[ProcessRow]:
    """Yield the roots and all below them, each once."""
    yielded: set[int] = set()
    for root in roots:
        for process in (root, *table.descendants(root)):
            if process.pid not in yielded:
                yielded.add(process.pid)
                yield process


def rank_environment(
    table: Table, rank: ProcessRow, ranks: Mapping[int, ProcessRow]
) -> Mapping[str, str]:
    """Return the environment of a rank; where it has no number, that of a program which it started
    later.

    A process shows only what it was started with, and setproctitle clears even that; what it has
    set since stands in its children's. What is below another rank is that one's.
    """
    if from_environment(rank.environ).rank is not None:
        return rank.environ
    below = [each for each in table.children(rank) if each.pid in ranks]
    others = {each.pid for other in below for each in (other, *table.descendants(other))}
    for child in table.descendants(rank):
        if (
            child.pid not in others
            and child.argv != rank.argv
            and from_environment(child.environ).rank is not None
        ):
            return {**rank.environ, **child.environ}
    return rank.environ
