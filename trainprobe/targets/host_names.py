"""Names of hosts as users type them: `node1,node2`, SLURM's ranges `node[1-3,07]`, and of
ClusterShell's node sets the step `node[1-9/2]` and the difference `node[1-9]!node3`. A set with a
group in it, such as `@gpu,node7` or `@gpu!@drained`, is ClusterShell's own to tell.
"""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator

from trainprobe.errors import UsageError
from trainprobe.system.run import run

MOST_HOSTS = 4096
# What ssh and srun take for a host, with a user before it for ssh. A name that begins with a dash
# would be one of their options.
NAME = re.compile(
    r"(?:[A-Za-z0-9_][\w.-]{0,63}@)?[A-Za-z0-9_](?:[\w.:-]{0,252}[A-Za-z0-9_])?", re.ASCII
)
_GROUP = re.compile(r"(?:^|[,!&^])\s*(@[\w.:*-]+)", re.ASCII)  # `me@node1` is a user of ssh
_SET = re.compile(r"[\w.,:@*!&^/\[\] -]{1,4096}", re.ASCII)  # groups may go through a shell
_SETS = ("nodeset", "cluset")  # the second name is there since ClusterShell 1.8
_ASK_S = 10.0  # groups may come from the scheduler or a web service
_WORD = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?:/(\d{1,4}))?)?")


def host_names(option: str, text: str) -> tuple[str, ...]:
    """Return the hosts that `text` lists, in order. Raises UsageError."""
    if _GROUP.search(text) and _SET.fullmatch(text):
        text = _without_groups(option, text)
    if "!" in text:
        text, *without = text.split("!")
        gone = {name for part in without for name in host_names(option, part)}
        left = tuple(name for name in host_names(option, text) if name not in gone)
        if not left:
            raise UsageError(f"{option} leaves no host.", "Take fewer of them out.")
        return left
    found: dict[str, None] = {}
    if ",".join(_WORD.findall(text)) != re.sub(r",+", ",", text).strip(","):
        raise UsageError(
            f"{option} has a bracket without its other one: {text[:60]!r}.",
            "Write ranges as node[1-3,7].",
        )
    for word in _WORD.findall(text):
        for name in _expanded(option, word.strip()):
            if not NAME.fullmatch(name):
                raise UsageError(
                    f"{option}: {name[:60]!r} is no name of a host.",
                    f"Write {option} node1,node2 or {option} node[1-3].",
                )
            found[name] = None
            if len(found) > MOST_HOSTS:
                raise UsageError(
                    f"{option} names more than {MOST_HOSTS} hosts.", "Name those of the job."
                )
    if not found:
        raise UsageError(
            f"{option} names no host.", f"Write {option} node1,node2 or {option} node[1-3]."
        )
    return tuple(found)


def _without_groups(option: str, text: str) -> str:
    """The same set as names, by the groups that the site has configured for ClusterShell. It takes
    a group that it does not know for an empty one, so each is asked for by itself.
    """
    write = f"Write {option} node1,node2 or {option} node[1-3]."
    program = next((name for name in _SETS if shutil.which(name)), "")
    if not program:
        raise UsageError(
            f"{option}: {text[:60]!r} names a group, and ClusterShell's nodeset is not on this"
            " machine.",
            write,
        )
    names = ""
    for part in (*dict.fromkeys(_GROUP.findall(text)), text):
        ran = run([program, "-e", "-S", ",", "--", part], timeout_s=_ASK_S)
        names = ran.stdout.decode("utf-8", "replace").strip()
        if ran.ended.how != "exited" or ran.ended.code != 0:
            said = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            why = said[0] if said else ran.ended.reason or f"it ended with {ran.ended.code}"
            raise UsageError(f"{option}: {program} cannot tell {part[:60]!r}: {why[:200]}.", write)
        if not names:
            raise UsageError(f"{option}: {program} knows no host of {part[:60]!r}.", write)
    return names


def _expanded(option: str, word: str) -> Iterator[str]:
    """`node[1-2]-ib` is node1-ib and node2-ib; a width as in `[08-11]` is kept."""
    pieces = re.split(r"\[([^\[\]]*)\]", word)
    if len(pieces) == 1:
        return iter((word,) if word else ())
    choices = [
        list(_numbers(option, piece)) if place % 2 else [piece]
        for place, piece in enumerate(pieces)
    ]
    return ("".join(parts) for parts in itertools.product(*choices))


def _numbers(option: str, listed: str) -> Iterator[str]:
    for part in listed.split(","):
        match = _PART.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match is not None else (1, 0)
        step = int(match[3] or 1) if match is not None else 0
        if match is None or last < first or last - first >= MOST_HOSTS or step < 1:
            raise UsageError(
                f"{option}: [{listed[:60]}] is no range of numbers.", "Write ranges as node[1-3,7]."
            )
        yield from (f"{number:0{len(match[1])}d}" for number in range(first, last + 1, step))
