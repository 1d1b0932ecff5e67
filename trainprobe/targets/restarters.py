"""Who starts a process again when it has ended: a service manager, a container, cron, a supervisor, a loop in a shell, a launcher that restarts."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from trainprobe.system.proc import read_file
from trainprobe.targets.process_table import Seen
from trainprobe.targets.programs import SHELLS, launcher_kind, option, program_of, whole

SCRIPT_BYTES = 64 * 1024
SUPERVISORS = re.compile(
    r"supervisord|runsv|runsvdir|s6-supervise|monit|circusd|pm2|PM2 .*|god|watchmedo|nodemon|entr|watch|immortal|daemontools|supervise|forever"
)
CRONS = re.compile(r"cron|crond|CRON|anacron|atd|fcron")
LOOP = re.compile(r"\b(?:while|until|for)\b[^#]*?\bdo\b", re.DOTALL)
UNIT = re.compile(r"/([^/]+\.service)(?:/|$)", re.MULTILINE)
# Units that carry sessions, schedulers or containers, and not a program of somebody's own.
HOSTING = re.compile(
    r"user@\d+|init|ssh|sshd|sshd@.*|cron|crond|docker|containerd|slurmd|kubelet|k3s|crio|dbus(?:-broker)?|getty@.*|systemd-.*|jupyterhub|snap\..*|vscode.*|code.*|gnome-.*"
)
CONTAINER = re.compile(r"(docker|libpod)[^\s]*?[-/:]([0-9a-f]{12})[0-9a-f]{20,52}\b")


@dataclass(frozen=True)
class Restarter:
    """`kind` is unit, user-unit, container, cron, supervisor, shell, launcher or parent; `name` is the unit, container or command; `pid` 0 for none."""

    kind: str
    name: str
    pid: int = 0
    seen_again: bool = False  # a process ended and another of the same command came, while we looked


def restarter_of(one: Seen, script: str, ours: str | None = None) -> Restarter | None:
    """Return what `one` is or hangs in that starts processes again, or None.

    With `ours`, our own cgroup's text, also the unit or container around it. With `script`, a shell counts only where its text names that script.
    """
    if ours is not None:
        return _around(one, ours)
    name = os.path.basename(one.argv[0] if one.argv else one.name).lstrip("-")
    if CRONS.fullmatch(name) or CRONS.fullmatch(one.name):
        return Restarter("cron", one.cmdline[:200], one.pid)
    program = program_of(one.argv)
    if SUPERVISORS.fullmatch(name) or SUPERVISORS.fullmatch(one.name) or (program.kind in ("script", "module") and SUPERVISORS.fullmatch(program.base)):
        return Restarter("supervisor", one.cmdline[:200], one.pid)
    if launcher_kind(one.argv):
        restarts = whole(option(program.rest, "max-restarts"))
        return Restarter("launcher", one.cmdline[:200], one.pid) if restarts else None
    if name in SHELLS:
        text = _text_of(one)
        loops = LOOP.search(text) is not None and (not script or os.path.basename(script) in text)
        return Restarter("shell", one.cmdline[:200], one.pid) if loops else None
    return None


def _text_of(shell: Seen) -> str:
    """What a shell was given to run: the word behind -c, or the beginning of its script."""
    for place, word in enumerate(shell.argv[1:], 1):
        if re.fullmatch(r"-[a-z]*c[a-z]*", word):
            return next((text for text in shell.argv[place + 1 :] if not text.startswith("-")), "")
        if not word.startswith("-"):
            path = os.path.join(shell.cwd or "/", word)
            return "" if not os.path.isfile(path) or path.startswith(("/dev/", "/proc/")) else read_file(path, SCRIPT_BYTES).decode("utf-8", "replace")
    return ""


def _around(one: Seen, ours: str) -> Restarter | None:
    own = {line.rpartition(":")[2] for line in ours.splitlines()}
    for line in one.cgroup.splitlines():
        path = line.rpartition(":")[2]
        if path in own or path == "/":
            continue
        match = CONTAINER.search(path)
        if match is not None and match.group(2) not in ours:
            return Restarter("container", match.group(2))
        units = [unit for unit in UNIT.findall(path) if not HOSTING.fullmatch(unit.removesuffix(".service"))]
        if units:
            return Restarter("user-unit" if "/user@" in path or "/user.slice/" in path else "unit", units[-1])
    return None
