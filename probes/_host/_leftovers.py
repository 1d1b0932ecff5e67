"""Which processes are an earlier run of a script: nobody answers for them any more. The standard library only, like all that probes use.

A process that its parent did not start has been adopted: a child has its parent's session unless it made its own, which it then leads.
What hangs below an open terminal, a session server or a scheduler's step is another run, and no left-over.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Dict, Iterator, List, NamedTuple, Set, Tuple

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
RUNS_ANOTHER = {"debugpy", "pdb", "cProfile", "profile", "trace", "coverage", "viztracer", "kernprof"}
MACHINERY = re.compile(r"multiprocess(?:ing)?\.(?:spawn import spawn_main|forkserver import main)|_inductor[./]compile_worker")
INITS = {"systemd", "init", "tini", "dumb-init", "docker-init", "catatonit"}
HOSTS = re.compile(r"sshd.*|login|su|sudo|tmux.*|screen|SCREEN|code.*|node|jupyter.*|slurmstepd.*|orted|prted|raylet|kubelet|containerd-shim.*|conmon")
WITH_WORD = {"-W", "-X"}


class One(NamedTuple):
    """A process of this user, as /proc shows it."""

    pid: int
    ppid: int
    group: int
    session: int
    terminal: int
    started: int
    name: str
    words: Tuple[str, ...]


def read(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""


def table() -> Dict[int, One]:
    """All processes that may be seen, those of others too: they may be the parents."""
    found = {}
    for entry in os.listdir("/proc"):
        text = read(f"/proc/{entry}/stat") if entry.isdigit() else ""
        fields = text.rpartition(")")[2].split()
        if len(fields) > 19 and fields[0] not in "ZX":
            words = tuple(read(f"/proc/{entry}/cmdline").rstrip("\0").split("\0"))
            ppid, group, session, terminal, started = (int(fields[place]) for place in (1, 2, 3, 4, 19))
            name = text[text.find("(") + 1 : text.rfind(")")]
            found[int(entry)] = One(int(entry), ppid, group, session, terminal, started, name, words if words[0] else ())
    return found


def program(words: Tuple[str, ...]) -> Tuple[str, str, Tuple[str, ...]]:
    """What a Python command line runs: (script|module|code, its name, its own words); nothing for what is no Python."""
    if not words or not PYTHON.fullmatch(os.path.basename(words[0])):
        return "", "", words[1:]
    place = 1
    while place < len(words):
        word = words[place]
        if re.fullmatch(r"-[a-zA-Z]*[cm]", word) and place + 1 < len(words):
            return _behind("module" if word.endswith("m") else "code", words[place + 1], words[place + 2 :])
        if not word.startswith("-"):
            return _behind("script", word, words[place + 1 :])
        place += 2 if word in WITH_WORD else 1
    return "", "", ()


def _behind(kind: str, name: str, rest: Tuple[str, ...]) -> Tuple[str, str, Tuple[str, ...]]:
    """`python -m pdb train.py` runs train.py."""
    script = next((place for place, word in enumerate(rest) if word.endswith(".py")), None)
    return (
        ("script", rest[script], rest[script + 1 :]) if kind != "code" and os.path.basename(name) in RUNS_ANOTHER and script is not None else (kind, name, rest)
    )


def runs(one: One, script: str) -> bool:
    """Does it run or launch the script? An editor, a search or a debugger that only names it does not."""
    kind, name, rest = program(one.words)
    launches = {os.path.basename(name), os.path.basename(one.words[0]) if one.words else ""} & LAUNCHERS
    if not script.endswith(".py") and not os.path.exists(script):  # a module
        return (kind == "module" and name == script) or (bool(launches) and script in rest)
    named = rest if launches else (name,) if kind == "script" else ()
    with contextlib.suppress(OSError):
        there = os.readlink(f"/proc/{one.pid}/cwd")
        return any(
            os.path.realpath(os.path.join(there, word)) == os.path.realpath(script) for word in named if os.path.basename(word) == os.path.basename(script)
        )
    return False


def above(all_of: Dict[int, One], one: One) -> Iterator[One]:
    for _ in range(64):
        parent = all_of.get(one.ppid)
        if parent is None or parent.started > one.started:
            return
        yield parent
        one = parent


def adopted(all_of: Dict[int, One], one: One) -> bool:
    """Whether its present parent did not start it: that one is gone."""
    parent = all_of.get(one.ppid)
    if one.ppid == 0 or parent is None:
        return one.ppid == 1
    if parent.started > one.started or one.session not in (parent.session, one.pid):
        return True
    if one.session != parent.session:  # it leads a session of its own: a daemon where an init has it
        return parent.pid == 1 or parent.name in INITS
    if one.group not in (one.pid, parent.group) and one.group not in all_of:
        return True
    return (parent.pid == 1 or parent.name in INITS) and MACHINERY.search(" ".join(one.words[:8])) is not None and not program(parent.words)[0]


def answered_for(all_of: Dict[int, One], one: One, mine: Set[int]) -> bool:
    """Whether a terminal, a session server, a scheduler, somebody above us too or process 1 stands above it, in an unbroken chain."""
    for _ in range(64):
        if adopted(all_of, one):
            return False
        parent = all_of.get(one.ppid)
        if parent is None:
            return one.ppid == 0
        chain = [parent, *above(all_of, parent)]
        if (parent.terminal and any(each.pid == parent.session for each in chain)) or HOSTS.fullmatch(parent.name) or parent.pid == 1 or parent.pid in mine:
            return True
        one = parent
    return False


def find(script: str) -> Tuple[List[One], List[One]]:
    """Return (processes of earlier runs with all below them, processes of other runs that somebody answers for)."""
    all_of = table()
    me = all_of[os.getpid()]
    mine = {me.pid, *(one.pid for one in above(all_of, me))}
    older = [one for one in all_of.values() if one.started <= me.started and one.pid not in mine and me.pid not in {each.pid for each in above(all_of, one)}]
    older = sorted((one for one in older if _own(one.pid)), key=lambda one: (one.started, one.pid))
    direct = {one.pid: one for one in older if runs(one, script)}
    tops = [one for one in direct.values() if not any(each.pid in direct for each in above(all_of, one))]
    live = [top for top in tops if answered_for(all_of, top, mine)]
    lost = {top.pid for top in tops} - {top.pid for top in live}
    left: List[One] = [one for one in older if one.pid in lost or any(each.pid in lost for each in above(all_of, one))]
    places: Set[int] = {number for one in left for number in (one.group, one.session)}
    known = {one.pid for one in left}
    left += [
        one
        for one in older
        if one.pid not in known and MACHINERY.search(" ".join(one.words[:8])) and {one.group, one.session} & places and adopted(all_of, one)
    ]
    return left, live


def _own(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{pid}").st_uid == os.getuid()
    return False
