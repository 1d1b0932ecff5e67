"""Earlier runs of the same program on this host, who starts them again, and what is simply another
run that still goes on.

An earlier run has lost whoever started it, or somebody without a terminal keeps it alive. What
hangs below a terminal, a session server or a scheduler's step is another run, and no left-over. A
process that its parent did not start has been adopted: a child has the session of its parent unless
it made its own, and then it leads it (setsid(2)). A leader right below an init may be either and
counts as adopted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from trainprobe.system.answering import real_path
from trainprobe.targets.process_table import ProcessRow, Table, in_order
from trainprobe.targets.programs import (
    ADOPTERS,
    SHELLS,
    is_compile_worker,
    is_forked_by_server,
    is_helper,
    is_spawned,
    is_tool,
    launcher_kind,
    option,
    program_of,
)
from trainprobe.targets.restarters import Restarter, restarter_of

APART_S = 5.0  # processes that start within this of each other are one run
# Who opens sessions for people and for schedulers: below them somebody or something still answers
# for the run.
HOSTS = re.compile(
    r"sshd(?:-session)?|login|su|sudo|tmux(?::"
    r" server)?|screen|SCREEN|mosh-server|ttyd|gnome-terminal.*|konsole|xterm|kitty|alacritty"
    r"|wezterm.*|code(?:-server)?|node"
    r"|jupyter.*|slurmstepd.*|pbs_mom|orted|prted|raylet|kubelet|conmon|containerd-shim.*|runc"
    r"|sge_shepherd|starter|hydra_pmi_proxy"
)


@dataclass(frozen=True)
class Wanted:
    """What counts as the same program: `kind` is script (a real path), module or code (the text
    behind -c); `cwd` is where it is started.
    """

    kind: str
    name: str
    cwd: str = ""


@dataclass(frozen=True)
class Earlier:
    """A process of an earlier run. `run` counts runs from 0, oldest first; `role` is launcher,
    main, worker, child or tracker.

    A tracker is multiprocessing's own: it takes no SIGTERM and ends with the last process that it
    keeps books for. `sure` is false for a worker that names no script and is joined to the run by
    its folder alone, and for all below it.
    """

    seen: ProcessRow
    run: int
    role: str
    sure: bool = True


@dataclass(frozen=True)
class Other:
    """A process of another run that somebody answers for; `why` says who."""

    seen: ProcessRow
    why: str


@dataclass(frozen=True)
class Found:
    earlier: tuple[Earlier, ...] = ()
    others: tuple[Other, ...] = ()
    restarters: tuple[Restarter, ...] = ()


def wanted_of(argv: Sequence[str], cwd: str, script: str = "") -> Wanted | None:
    """Return what the command `argv` runs; None where it names no script, module or code."""
    if script:
        return Wanted("script", real_path(os.path.join(cwd, script)), cwd)
    argv = command_in_proc(argv)
    program = program_of(argv)
    if launcher_kind(argv):
        module = option(program.rest, "m", "module")
        return Wanted("module", module, cwd) if module else None
    return (
        Wanted(program.kind, program.name, cwd)
        if program.kind in ("module", "code") and program.name
        else None
    )


def command_in_proc(argv: Sequence[str]) -> Sequence[str]:
    """Return a command as /proc will show it: `torchrun` becomes `python … torchrun`."""
    return (
        ("python", *argv)
        if program_of(argv).kind == "" and launcher_kind(("python", *argv))
        else argv
    )


def runs_it(process: ProcessRow, wanted: Wanted) -> bool:
    """Whether a process runs or launches the program; an editor that names it does not."""
    if (
        process.ended
        or not process.argv
        or (is_tool(process.argv) and not launcher_kind(process.argv))
    ):
        return False
    program = program_of(process.argv)
    if launcher_kind(process.argv):
        named = [
            word
            for word in program.rest
            if wanted.kind == "script" and os.path.basename(word) == os.path.basename(wanted.name)
        ]
        return any(_same(process, word, wanted) for word in named) or (
            wanted.kind == "module" and option(program.rest, "m", "module") == wanted.name
        )
    if program.kind != wanted.kind:
        return False
    if wanted.kind == "script":
        return os.path.basename(program.name) == os.path.basename(wanted.name) and _same(
            process, program.name, wanted
        )
    # A module or a line of code means something else in another folder.
    return program.name == wanted.name and (
        not wanted.cwd or real_path(process.cwd or "/") == real_path(wanted.cwd)
    )


def _same(process: ProcessRow, word: str, wanted: Wanted) -> bool:
    return real_path(os.path.join(process.cwd or "/", word)) == wanted.name


def find(table: Table, wanted: Wanted, own: int, uid: int) -> Found:
    """Sort `uid`'s older processes that run the program, neither above nor below `own`."""
    me = table.by_pid.get(own)
    if me is None:
        return Found()
    family = {
        me.pid,
        *(process.pid for process in table.ancestors(me)),
        *(process.pid for process in table.descendants(me)),
    }
    older = [
        process
        for process in table.by_pid.values()
        if process.pid not in family
        and process.started_ticks <= me.started_ticks
        and not process.ended
    ]
    direct = {
        process.pid: process
        for process in sorted(older, key=in_order)
        if runs_it(process, wanted) and process.uid == uid
    }
    tops = [
        process
        for process in direct.values()
        if not any(above.pid in direct for above in table.ancestors(process))
    ]
    restarters: dict[tuple[str, str, int], Restarter] = {}
    left: list[ProcessRow] = []
    others: list[Other] = []
    for top in tops:
        why, keeper = _answered_for(table, top, me, family)
        if why:
            others += [
                Other(process, why)
                for process in (
                    top,
                    *(each for each in table.descendants(top) if each.pid in direct),
                )
            ]
            continue
        left.append(top)
        if keeper is not None:
            restarters.setdefault((keeper.kind, keeper.name, keeper.pid), keeper)
    known = {*direct, *(process.pid for process in restarters.values())}
    shells = [
        process
        for process in older
        if wanted.kind == "script"
        and process.pid not in known
        and process.argv
        and process.program in SHELLS
    ]
    for shell in shells:  # between two runs nothing but the loop lives
        loop = restarter_of(shell, wanted.name) if shell.uid == uid else None
        if loop is not None and not _answered_for(table, shell, me, family)[0]:
            restarters.setdefault((loop.kind, loop.name, loop.pid), loop)
    rows = _rows(table, left, family)
    placed = {row.seen.pid for row in rows}
    answered_for = {other.seen.pid for other in others}
    rest = [
        process
        for process in older
        if process.pid not in placed and process.pid not in answered_for
    ]
    lost = [
        process
        for process in rest
        if (is_machinery(process) or is_helper(process.argv))
        and process.uid == uid
        and adopted(table, process)
    ]
    # Where another program still lives in the same group, they may be that one's.
    lived_in = {
        process.group
        for process in table.by_pid.values()
        if process.pid not in placed
        and process.pid not in family
        and not process.ended
        and _own_program(process)
    }
    return Found(
        (
            *rows,
            *_lost_workers(
                table,
                [process for process in lost if process.group not in lived_in],
                rows,
                wanted,
                family,
            ),
        ),
        tuple(others),
        tuple(restarters.values()),
    )


def runs_again(
    before: Table, after: Table, found: Found, wanted: Wanted, own: int, uid: int
) -> tuple[Restarter, ...]:
    """Return the restarters; marked if they started the command again between the tables."""
    me = after.by_pid.get(own)
    family = {process.pid for process in after.descendants(me)} if me is not None else set()
    parents = {row.seen.pid for row in found.earlier} | {row.seen.ppid for row in found.earlier}
    parents |= {restarter.pid for restarter in found.restarters}
    again = {
        process.ppid
        for process in after.by_pid.values()
        if process.pid not in before.by_pid
        and process.pid not in family
        and process.ppid in parents
        and process.uid == uid
        and runs_it(process, wanted)
    }
    known = {restarter.pid for restarter in found.restarters}
    return (
        *(replace(restarter, seen_again=restarter.pid in again) for restarter in found.restarters),
        *(
            Restarter("parent", before.by_pid[pid].cmdline[:200], pid, seen_again=True)
            for pid in sorted(again - known - {0, 1})
            if pid in before.by_pid
        ),
    )


def _rows(table: Table, tops: Iterable[ProcessRow], family: set[int]) -> list[Earlier]:
    rows: list[Earlier] = []
    run, last = -1, None
    for top in sorted(tops, key=in_order):
        age = table.age_s(top) or 0.0
        run += last is None or last - age > APART_S
        last = age
        rows.append(Earlier(top, run, "launcher" if launcher_kind(top.argv) else "main"))
        below = [
            process
            for process in table.descendants(top)
            if process.pid not in family and not process.ended
        ]
        rows += [Earlier(process, run, _role(table, process)) for process in below]
    return rows


def _role(table: Table, process: ProcessRow) -> str:
    return (
        "tracker"
        if is_helper(process.argv)
        else "worker"
        if is_machinery(process) or _forked(table, process)
        else "child"
    )


def _forked(table: Table, process: ProcessRow) -> bool:
    above = table.parent(process)
    return above is not None and above.argv == process.argv


def _lost_workers(
    table: Table,
    lost: Sequence[ProcessRow],
    rows: Sequence[Earlier],
    wanted: Wanted,
    family: set[int],
) -> list[Earlier]:
    """Workers whose run is gone name no script: they are known by a group or session that they
    share with it, or else by the folder.

    A shell without job control puts all that it starts into one group, and a terminal has one
    session for all: the group or session counts where a process of the run leads it, or where the
    folder is that of the run too. What has one lost group in common is one run.
    """
    leads = {row.seen.pid: row.run for row in rows}
    shared = {
        (place, _folder(row.seen)): row.run
        for row in rows
        for place in (("g", row.seen.group), ("s", row.seen.session))
    }
    folders = {
        real_path(wanted.cwd) if wanted.cwd else "",
        os.path.dirname(wanted.name) if wanted.kind == "script" else "",
    } - {""}
    following = max((row.run for row in rows), default=-1) + 1
    gone: dict[int, int] = {}  # group of which no process names the script, and its run
    found: list[Earlier] = []
    for process in sorted(lost, key=in_order):
        places = (("g", process.group), ("s", process.session))
        known = [
            run
            for kind, number in places
            for run in (leads.get(number), shared.get(((kind, number), _folder(process))))
            if run is not None
        ]
        if known:
            found.append(Earlier(process, known[0], _role(table, process)))
        elif _folder(process) in folders:
            found.append(
                Earlier(
                    process,
                    gone.setdefault(process.group, following + len(gone)),
                    _role(table, process),
                    sure=False,
                )
            )
    tops = {row.seen.pid for row in found}
    for row in tuple(found):
        below = [
            process
            for process in table.descendants(row.seen)
            if process.pid not in family and process.pid not in tops and not process.ended
        ]
        found += [Earlier(process, row.run, _role(table, process), row.sure) for process in below]
    return found


def _folder(process: ProcessRow) -> str:
    return real_path(process.cwd) if process.cwd else f"unknown, of {process.pid}"


def _own_program(process: ProcessRow) -> bool:
    """A Python program of the user's, not started by multiprocessing or a compiler."""
    return (
        program_of(process.argv).kind in ("script", "module", "code")
        and not is_machinery(process)
        and not is_helper(process.argv)
    )


def is_machinery(process: ProcessRow) -> bool:
    """A process of multiprocessing or torch's compiler, which names no script."""
    argv = process.argv
    return is_spawned(argv) or is_forked_by_server(argv) or is_compile_worker(argv)


def adopted(table: Table, process: ProcessRow) -> bool:
    """Whether its present parent did not start it: that one is gone."""
    if process.ppid == 0:
        return False  # started from outside of this pid namespace
    above = table.by_pid.get(process.ppid)
    if above is None:
        return process.ppid == 1
    if above.started_ticks > process.started_ticks:
        return True
    if process.session not in (above.session, process.pid):
        return True
    inits = above.pid == 1 or above.program in ADOPTERS
    if process.session == process.pid and process.session != above.session:
        return inits
    leader = table.by_pid.get(process.group)
    if process.group not in (process.pid, above.group) and (leader is None or leader.ended):
        return True  # a shell makes a group for each job; its leader was the parent
    python = program_of(above.argv).kind != ""
    return inits and not python and (is_machinery(process) or is_helper(process.argv))


def _answered_for(
    table: Table, top: ProcessRow, me: ProcessRow, family: set[int]
) -> tuple[str, Restarter | None]:
    """Say who answers for a run ("" for nobody), and who would start it again: the nearest that
    would, up to where the chain was cut.
    """
    keeper = restarter_of(top, "") if launcher_kind(top.argv) else None
    process = top
    for _ in range(64):
        above = None if adopted(table, process) else table.parent(process)
        service = (
            restarter_of(process, "", ours=me.cgroup) if above is None or above.pid == 1 else None
        )
        if service is not None and service.kind in ("unit", "user-unit", "container"):
            return "", service
        if above is None:
            if process.ppid == 0 and process.pid != 1:
                return "it was started from outside of this container", None
            # Whoever waits for it has something to do when it ends: another try, or the next
            # command.
            return "", keeper or (
                Restarter("parent", process.cmdline[:200], process.pid)
                if process is not top
                else None
            )
        name = above.program
        lead = table.by_pid.get(above.session)
        if (
            above.terminal
            and lead is not None
            and (lead is above or lead in list(table.ancestors(above)))
        ):
            return f"the terminal of pid {lead.pid} ({lead.name}) is open", None
        if HOSTS.fullmatch(name) or HOSTS.fullmatch(above.name):
            return f"pid {above.pid} ({above.name}) has it", None
        if above.pid != 1 and above.pid in family:
            return f"pid {above.pid} ({above.name}) has it, and has us too", None
        held = restarter_of(above, "")
        if held is not None and held.kind in ("cron", "supervisor"):
            return "", held
        if above.pid == 1:
            return f"pid 1 ({above.name}) has started it", None
        keeper = held or keeper
        process = above
    return "", keeper
