"""Which processes are an earlier run of a script: nobody answers for them any more. The standard
library only, like all that probes use.

A process that its parent did not start has been adopted: a child has its parent's session unless it
made its own, which it then leads. What hangs below an open terminal, a session server or a
scheduler's step is another run, and no left-over.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Dict, Iterator, List, NamedTuple, Set, Tuple

from _shared.proc import read_text

PYTHON = re.compile(r"(?:pt_main_)?python(?:\d+(?:\.\d+)*)?t?")
LAUNCHERS = {
    "torchrun",
    "accelerate",
    "deepspeed",
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "mpirun",
    "mpiexec",
    "horovodrun",
}
RUNS_ANOTHER = {
    "debugpy",
    "pdb",
    "cProfile",
    "profile",
    "trace",
    "coverage",
    "viztracer",
    "kernprof",
}
MACHINERY = re.compile(
    r"multiprocess(?:ing)?\.(?:spawn import spawn_main|forkserver import"
    r" main)|_inductor[./]compile_worker"
)
INITS = {"systemd", "init", "tini", "dumb-init", "docker-init", "catatonit"}
HOSTS = re.compile(
    r"sshd.*|login|su|sudo|tmux.*|screen|SCREEN|code.*|node|jupyter.*|slurmstepd.*|orted|prted"
    r"|raylet|kubelet|containerd-shim.*|conmon"
)
WITH_WORD = {"-W", "-X"}


class Process(NamedTuple):
    """A process of this user, as /proc shows it."""

    pid: int
    ppid: int
    group: int
    session: int
    terminal: int
    started: int
    name: str
    argv: Tuple[str, ...]


def table() -> Dict[int, Process]:
    """All processes that may be seen, those of others too: they may be the parents."""
    found = {}
    for entry in os.listdir("/proc"):
        text = read_text(f"/proc/{entry}/stat") if entry.isdecimal() else ""
        fields = text.rpartition(")")[2].split()
        if len(fields) > 19 and fields[0] not in "ZX":
            argv = tuple(read_text(f"/proc/{entry}/cmdline").rstrip("\0").split("\0"))
            ppid, group, session, terminal, started = (
                int(fields[place]) for place in (1, 2, 3, 4, 19)
            )
            name = text[text.find("(") + 1 : text.rfind(")")]
            found[int(entry)] = Process(
                int(entry), ppid, group, session, terminal, started, name, argv if argv[0] else ()
            )
    return found


def program(argv: Tuple[str, ...]) -> Tuple[str, str, Tuple[str, ...]]:
    """What a Python command line runs: (script|module|code, name, arguments)."""
    if not argv or not PYTHON.fullmatch(os.path.basename(argv[0])):
        return "", "", argv[1:]
    place = 1
    while place < len(argv):
        argument = argv[place]
        if re.fullmatch(r"-[a-zA-Z]*[cm]", argument) and place + 1 < len(argv):
            return _behind(
                "module" if argument.endswith("m") else "code", argv[place + 1], argv[place + 2 :]
            )
        if not argument.startswith("-"):
            return _behind("script", argument, argv[place + 1 :])
        place += 2 if argument in WITH_WORD else 1
    return "", "", ()


def _behind(kind: str, name: str, rest: Tuple[str, ...]) -> Tuple[str, str, Tuple[str, ...]]:
    """`python -m pdb train.py` runs train.py."""
    script = next((place for place, argument in enumerate(rest) if argument.endswith(".py")), None)
    return (
        ("script", rest[script], rest[script + 1 :])
        if kind != "code" and os.path.basename(name) in RUNS_ANOTHER and script is not None
        else (kind, name, rest)
    )


def runs(item: Process, script: str) -> bool:
    """Whether it runs or launches the script; an editor or debugger that names it does not."""
    kind, name, rest = program(item.argv)
    launches = {
        os.path.basename(name),
        os.path.basename(item.argv[0]) if item.argv else "",
    } & LAUNCHERS
    if not script.endswith(".py") and not os.path.exists(script):  # a module
        return (kind == "module" and name == script) or (bool(launches) and script in rest)
    named = rest if launches else (name,) if kind == "script" else ()
    with contextlib.suppress(OSError):
        there = os.readlink(f"/proc/{item.pid}/cwd")
        return any(
            os.path.realpath(os.path.join(there, argument)) == os.path.realpath(script)
            for argument in named
            if os.path.basename(argument) == os.path.basename(script)
        )
    return False


def above(all_of: Dict[int, Process], item: Process) -> Iterator[Process]:
    for _ in range(64):
        parent = all_of.get(item.ppid)
        if parent is None or parent.started > item.started:
            return
        yield parent
        item = parent


def adopted(all_of: Dict[int, Process], item: Process) -> bool:
    """Whether its present parent did not start it: the one that did is gone."""
    parent = all_of.get(item.ppid)
    if item.ppid == 0 or parent is None:
        return item.ppid == 1
    if parent.started > item.started or item.session not in (parent.session, item.pid):
        return True
    # it leads a session of its own: a daemon where an init has it
    if item.session != parent.session:
        return parent.pid == 1 or parent.name in INITS
    if item.group not in (item.pid, parent.group) and item.group not in all_of:
        return True
    return (
        (parent.pid == 1 or parent.name in INITS)
        and MACHINERY.search(" ".join(item.argv[:8])) is not None
        and not program(parent.argv)[0]
    )


def answered_for(all_of: Dict[int, Process], item: Process, mine: Set[int]) -> bool:
    """Whether an unbroken chain leads to a terminal, session server, scheduler or process 1."""
    for _ in range(64):
        if adopted(all_of, item):
            return False
        parent = all_of.get(item.ppid)
        if parent is None:
            return item.ppid == 0
        chain = [parent, *above(all_of, parent)]
        if (
            (parent.terminal and any(each.pid == parent.session for each in chain))
            or HOSTS.fullmatch(parent.name)
            or parent.pid == 1
            or parent.pid in mine
        ):
            return True
        item = parent
    return False


def find(script: str) -> Tuple[List[Process], List[Process]]:
    """Return (processes of earlier runs with all below them, processes of other live runs)."""
    all_of = table()
    me = all_of[os.getpid()]
    mine = {me.pid, *(item.pid for item in above(all_of, me))}
    older = [
        item
        for item in all_of.values()
        if item.started <= me.started
        and item.pid not in mine
        and me.pid not in {each.pid for each in above(all_of, item)}
    ]
    older = sorted(
        (item for item in older if _own(item.pid)), key=lambda item: (item.started, item.pid)
    )
    direct = {item.pid: item for item in older if runs(item, script)}
    tops = [
        item
        for item in direct.values()
        if not any(each.pid in direct for each in above(all_of, item))
    ]
    live = [top for top in tops if answered_for(all_of, top, mine)]
    lost = {top.pid for top in tops} - {top.pid for top in live}
    left: List[Process] = [
        item
        for item in older
        if item.pid in lost or any(each.pid in lost for each in above(all_of, item))
    ]
    places: Set[int] = {number for item in left for number in (item.group, item.session)}
    known = {item.pid for item in left}
    left += [
        item
        for item in older
        if item.pid not in known
        and MACHINERY.search(" ".join(item.argv[:8]))
        and {item.group, item.session} & places
        and adopted(all_of, item)
    ]
    return left, live


def _own(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{pid}").st_uid == os.getuid()
    return False
