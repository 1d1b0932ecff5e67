"""What locks the threads of one process want and hold, as the source around their lines spells them.

A Python lock shows neither its `acquire` frame nor its owner: a futex is all that the kernel tells. The text of the user's own lines is what is left.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainprobe.causes.ends import ends, threads_of
from trainprobe.causes.scene import Scene
from trainprobe.causes.words import file_line
from trainprobe.facts import Thread
from trainprobe.stacks.places import is_user

_WANTS = re.compile(r"\bwith\s+(?P<with>[\w.\[\]'\"]+)(?:\s+as\s+\w+)?\s*(?:,.*)?:|(?P<call>[\w.\[\]]+)\.acquire\(")
_JOINS = re.compile(r"[\w.\[\]]+\.join\(\)?")
_NO_LOCKS = re.compile(r"no_grad|open|autocast|profiler|inference_mode|join|catch_warnings|suppress")


@dataclass(frozen=True)
class Waiting:
    """One thread at a line that takes a lock: what it wants and what it holds, as the source spells them (last part of the name)."""

    thread: Thread
    where: str
    wants: str
    holds: frozenset[str]
    joins: bool


def _name(spelled: str) -> str:
    return spelled.rsplit(".", 1)[-1]


def _waiting(scene: Scene, thread: Thread) -> Waiting | None:
    own = [frame for frame in thread.frames if is_user(frame)]
    sites = scene.sites(own[-1:])
    if not sites:
        return None
    here = sites[-1]
    match = _WANTS.search(here.text)
    joins = match is None and _JOINS.search(here.text) is not None and any(frame.base == "threading.py" for frame in thread.frames[-4:])
    if match is None and not joins:
        return None
    wanted = _name(match["with"] or match["call"]) if match is not None else ""
    blocks = [block for site in scene.sites(own) for block in site.blocks if block.kind == "with" and not (site is here and block.line == here.line)]
    held = {_name(found.group("with")) for block in blocks if (found := _WANTS.search(block.text)) is not None and found.group("with")}
    return Waiting(thread, file_line(here.file, here.line), wanted, frozenset(name for name in held if not _NO_LOCKS.search(name)), joins)


def circle(scene: Scene) -> tuple[Waiting, ...]:
    """Threads of one process that wait for each other: two of them, or one that wants what it holds."""
    for pid in dict.fromkeys(thread.pid for thread in (*ends(scene), *scene.threads(scene.suspects))):
        found = [one for thread in threads_of(scene, pid) if (one := _waiting(scene, thread)) is not None]
        for one in found:
            for other in found:
                if one is not other and other.wants in one.holds and (one.wants in other.holds or one.joins):
                    return (one, other)
            if one.wants and one.wants in one.holds:
                return (one,)
    return ()


def says(threads: tuple[Waiting, ...]) -> str:
    """Who wants what and holds what, in words."""
    parts = []
    for one in threads:
        name = "MainThread" if one.thread.main else one.thread.name or f"thread {one.thread.os_thread_id}"
        parts.append(f"{name} at {one.where} {'joins a thread' if one.joins else f'wants {one.wants}'} and holds {', '.join(sorted(one.holds))}")
    return "; ".join(parts)
