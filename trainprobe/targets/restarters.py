"""Who starts a process again when it has ended: a service manager, a container, cron, a
supervisor, a loop in a shell, a launcher that restarts.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from trainprobe.system.answering import real_path, silent
from trainprobe.system.proc import read_file
from trainprobe.targets.process_table import ProcessRow
from trainprobe.targets.programs import SHELLS, launcher_kind, option, program_of, whole

SCRIPT_BYTES = 64 * 1024
SUPERVISORS = re.compile(
    r"supervisord|runsv|runsvdir|s6-supervise|monit|circusd|pm2|PM2"
    r" .*|god|watchmedo|nodemon|entr|watch|immortal|daemontools|supervise|forever"
)
CRONS = re.compile(r"cron|crond|CRON|anacron|atd|fcron")
LOOP = re.compile(r"\b(?:while|until|for)\b[^#]*?\bdo\b", re.DOTALL)
UNIT = re.compile(r"/([^/]+\.service)(?:/|$)", re.MULTILINE)
# Units that carry sessions, schedulers or containers, and not a program of somebody's own.
HOSTING = re.compile(
    r"user@\d+|init|ssh|sshd|sshd@.*|cron|crond|docker|containerd|slurmd|kubelet|k3s|crio"
    r"|dbus(?:-broker)?|getty@.*|systemd-.*|jupyterhub|snap\..*|vscode.*|code.*|gnome-.*"
)
CONTAINER = re.compile(r"(docker|libpod)[^\s]*?[-/:]([0-9a-f]{12})[0-9a-f]{20,52}\b")


@dataclass(frozen=True)
class Restarter:
    """`kind` is unit, user-unit, container, cron, supervisor, shell, launcher or parent; `name`
    is the unit, container or command; `pid` 0 for none.
    """

    kind: str
    name: str
    pid: int = 0
    seen_again: bool = (
        False  # a process ended and another of the same command came, while we looked
    )


def restarter_of(process: ProcessRow, script: str, ours: str | None = None) -> Restarter | None:
    """Return what `one` is or hangs in that starts processes again, or None.

    With `ours`, our own cgroup's text, also the unit or container around it. With `script`, a real
    path, a shell counts only where its text starts that very file, and not one of the same name in
    another folder.
    """
    if ours is not None:
        return _around(process, ours)
    name = process.program.lstrip("-")
    if CRONS.fullmatch(name) or CRONS.fullmatch(process.name):
        return Restarter("cron", process.cmdline[:200], process.pid)
    program = program_of(process.argv)
    if (
        SUPERVISORS.fullmatch(name)
        or SUPERVISORS.fullmatch(process.name)
        or (program.kind in ("script", "module") and SUPERVISORS.fullmatch(program.base))
    ):
        return Restarter("supervisor", process.cmdline[:200], process.pid)
    if launcher_kind(process.argv):
        restarts = whole(option(program.rest, "max-restarts"))
        return Restarter("launcher", process.cmdline[:200], process.pid) if restarts else None
    if name in SHELLS:
        text = _text_of(process)
        loops = LOOP.search(text) is not None and (not script or names(text, script, process.cwd))
        return Restarter("shell", process.cmdline[:200], process.pid) if loops else None
    return None


def names(text: str, script: str, cwd: str) -> bool:
    """Whether a shell in folder `cwd` that is given `text` names the file at the real path
    `script`.

    What it does before its loop has been done, so there it stands in `cwd`; in the loop and in
    parentheses a relative word is taken from where the last `cd` leads. Where that, or the word,
    hangs on a variable, the file is not known: then it counts as another one.
    """
    folder: str | None = cwd or None
    looping = False
    ends: list[str | None] = []  # where the shell stands again when a parenthesis closes
    words = re.findall(r"""#.*|[()]|(?:[^\s;&|()"'`]|"[^"]*"|'[^']*')+""", text)
    for place, raw in enumerate(words):
        word = raw.replace('"', "").replace("'", "")
        if raw.startswith("#"):
            continue
        looping = looping or raw == "do"
        if raw == "(":
            ends.append(folder)
        elif raw == ")":
            folder = ends.pop() if ends else folder
        elif place and words[place - 1] in ("cd", "pushd"):
            folder = _led(folder, word) if looping or ends else folder
        elif os.path.basename(word) == os.path.basename(script):
            path = _led(folder, word)
            if path is not None and real_path(path) == script:
                return True
    return False


def _led(folder: str | None, word: str) -> str | None:
    """The path that a word means in a folder; None where it cannot be known."""
    if word.startswith(("$PWD/", "${PWD}/")):
        word = word.partition("/")[2]
    if "$" in word or "`" in word or word.startswith(("~", "-")):
        return None
    return (
        os.path.join(folder, word) if folder is not None else word if word.startswith("/") else None
    )


def _text_of(shell: ProcessRow) -> str:
    """What a shell was given to run: the word behind -c, or the beginning of its script."""
    for place, word in enumerate(shell.argv[1:], 1):
        if re.fullmatch(r"-[a-z]*c[a-z]*", word):
            return next((text for text in shell.argv[place + 1 :] if not text.startswith("-")), "")
        if not word.startswith("-"):
            path = os.path.join(shell.cwd or "/", word)
            return (
                ""
                if path.startswith(("/dev/", "/proc/")) or silent(path) or not os.path.isfile(path)
                else read_file(path, SCRIPT_BYTES).decode("utf-8", "replace")
            )
    return ""


def _around(process: ProcessRow, own_cgroup: str) -> Restarter | None:
    own = {line.rpartition(":")[2] for line in own_cgroup.splitlines()}
    for line in process.cgroup.splitlines():
        path = line.rpartition(":")[2]
        if path in own or path == "/":
            continue
        match = CONTAINER.search(path)
        if match is not None and match.group(2) not in own_cgroup:
            return Restarter("container", match.group(2))
        units = [
            unit
            for unit in UNIT.findall(path)
            if not HOSTING.fullmatch(unit.removesuffix(".service"))
        ]
        if units:
            return Restarter(
                "user-unit" if "/user@" in path or "/user.slice/" in path else "unit", units[-1]
            )
    return None
