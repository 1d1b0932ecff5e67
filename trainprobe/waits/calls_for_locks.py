"""File locks that a library asks for again and again inside one call: sqlite does."""

from __future__ import annotations

import re

from trainprobe.facts import Facts, HeldLock, MainThread, OpenFile, ProcessState, SourceSite
from trainprobe.stacks.places import is_user

_SLEEPS_ITSELF = re.compile(r"\bsleep\w*\(|\.wait\(")


def asked_inside_a_call(
    facts: Facts,
    cell: str,
    thread: MainThread,
    process: ProcessState | None,
    site: SourceSite | None,
) -> tuple[HeldLock, ...]:
    """Locks of others on files that the process has open for writing, where its thread sleeps below
    a line of the user's, whose `site` is given, that does not sleep by itself.
    """
    asleep = process is not None and process.state == "S" and "nanosleep" in process.wchan
    last = thread.frames[-1:]
    if not asleep or not last or not is_user(last[0]) or site is None:
        return ()
    if _SLEEPS_ITSELF.search(site.text):
        return ()
    mine = {
        fact.path
        for fact in facts.of(OpenFile, cell=cell)
        if fact.pid == thread.pid and "w" in fact.mode
    }
    return tuple(
        lock
        for lock in facts.of(HeldLock, cell=cell)
        if "WRITE" in lock.mode and lock.path in mine and lock.pid != thread.pid
    )
