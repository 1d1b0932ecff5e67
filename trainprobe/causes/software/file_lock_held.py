"""A rank waits for a file lock that somebody else holds.

Caches of datasets, of a model hub and of extension builds are guarded by lock files. A process of
an earlier run, another rank that itself waits in a collective, or a network file system that lost a
release keeps the lock, and the next one waits for ever.

It is recognised by the kernel's list of lock waiters, which names the holder, or by a stack that
stands in a lock's acquire with the lock file's path. A file system without locks refuses the call
itself. Where the kernel's list was read and the rank
is not in it, an flock is ruled out; a lock that polls is not listed.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import others_wait
from trainprobe.causes.locks_wanted import (
    asked_inside_a_call,
    held_by_others,
    holders,
    lock_waits,
    name_taken,
    says_of_polling,
    wanted_path,
    wanting_file_locks,
)
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, short, subject, verb
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.software.extension_build_lock import builds
from trainprobe.causes.startup_failures import captured
from trainprobe.causes.statements import late, quote, statement, text_of
from trainprobe.facts import ImportTried, LockWait, LogJob, RankException
from trainprobe.signatures.messages import message
from trainprobe.stacks.places import is_user
from trainprobe.waits.import_lock_waits import LONG_S, import_lock_wait

# ENOLCK, ENOSYS and EOPNOTSUPP of Linux and of a Mac, and NFS's ENOTSUPP
_UNKNOWN = re.compile(r"\[Errno (?:37|38|45|78|95|102|524)\]")
_LOCKS = re.compile(r"\b(?:flock|lockf|fcntl)\b")
GAVE_UP = message("file-lock-held.gave-up")


def _weigh(scene: Scene) -> Weighings:
    for wait in lock_waits(scene)[:1]:
        says = (
            f"The kernel lists pid {wait.pid} as waiting for the lock on {wait.path or 'a file'};"
            f" {_held_by(wait)}"
        )
        yield weighing(26, "process-state-and-locks", says, wait)
    inside = asked_inside_a_call(scene)
    for lock in () if lock_waits(scene) else held_by_others(scene)[:1]:
        says = f"The kernel lists pid {lock.pid} as the holder of the lock on {lock.path}"
        yield weighing(13 if inside else 26, "process-state-and-locks", says, lock)
    wanting = [thread for thread in wanting_file_locks(scene) if thread.moved is not True]
    if wanting:
        who = ranks_say([wanting[0].rank or 0])
        path = f" {wanting[0].lock_path}" if wanting[0].lock_path else ""
        points = 13 if wanting[0].moved is False else 6
        if (
            not (lock_waits(scene) or held_by_others(scene))
            and scene.looked("locks")
            and wanting[0].lock_path
        ):
            says = (
                "No holder of that file is seen here: the lock file is stale, or held on another"
                " host"
            )
            yield weighing(3, "process-state-and-locks", says, *wanting)
        yield from others_wait(scene)
        says = f"{who} stands in the acquire of a file lock{path} ({wanting[0].op or 'lock'})"
        yield weighing(points, "suspects-stack", says, *wanting)
    elif inside or name_taken(scene):
        yield from says_of_polling(scene)
        yield from others_wait(scene)
    elif not lock_waits(scene) and scene.looked("locks") and scene.threads(scene.ranks):
        says = "The kernel lists none of its processes as waiting for a file lock"
        yield weighing(-13, "process-state-and-locks", says, *scene.threads(scene.ranks))
    got = {event.captured.get("id") for event in scene.events("lock-got")}
    asking = [
        event
        for event in scene.events("lock-waiting", "lock-asked")
        if scene.group.mode == "hang"
        and not late(scene, event)
        and event.captured.get("id") not in got
    ]
    if asking:
        # it asks twenty times a second: one line alone may be of any wait, unless it is the last
        job = scene.facts.one(LogJob, cell=scene.cell)
        last = job is not None and job.last_place - (asking[-1].place or 0) <= 1
        points = 13 if last or sum(event.count for event in asking) > 1 else 10
        says = f"It was still asking for a lock when it fell silent: {short(asking[-1].line, 120)}"
        yield weighing(points, "suspects-log", says, *asking[-3:])
    for tried in _imports_waiting(scene)[:1]:
        says = (
            f"`import {tried.module}` in a fresh process had not come back and waited for the lock"
            f" file {tried.lock_paths[0]}"
        )
        yield weighing(26, "probe-outcome", says, tried)
    reported = import_lock_wait(scene.facts, scene.cell)
    if reported is not None and reported.waiting:
        says = (
            f"{ranks_say(reported.waiters)} {verb(reported.waiters, 'was', 'were')} still"
            " waiting for the"
            f" import lock, which {reported.holder} holds"
        )
        points = 3 if reported.got is not None or reported.held_s < LONG_S else 13
        yield weighing(points, "suspects-log", says, *reported.waiting)
    refused = _no_locks(scene)
    if refused is not None:
        told = next((row for row in text_of(refused).splitlines() if _UNKNOWN.search(row)), "")
        says = f"The file system of that file has no locks: {short(told, 100)}"
        yield weighing(26, "suspects-stack", says, refused)
        return
    gave_up = statement(scene, GAVE_UP)
    if gave_up is not None:
        yield quote(26 if gave_up.origin else 10, "It gave up on a lock", gave_up)


def _held_by(wait: LockWait) -> str:
    if wait.holder_pid == wait.pid:
        return "it changed hands during the look"
    return f"pid {wait.holder_pid} holds it" if wait.holder_pid else "the holder is on another host"


def _no_locks(scene: Scene) -> RankException | None:
    """The exception of a lock that the file system does not know."""
    last = scene.origin
    if last is None:
        return None
    calls = " ".join(f"{frame.name} {frame.text}" for frame in last.frames[-1:])
    refused = _UNKNOWN.search(text_of(last)) is not None
    return last if refused and _LOCKS.search(calls) else None


def _imports_waiting(scene: Scene) -> tuple[ImportTried, ...]:
    """Imports that timed out at a lock file other than a build's."""
    tried = scene.facts.of(ImportTried) if scene.group.probe == "import_memory" else ()
    return tuple(
        fact
        for fact in tried
        if fact.outcome == "timed_out" and fact.lock_paths and not builds(fact)
    )


def _pids(scene: Scene) -> tuple[int, ...]:
    reported = import_lock_wait(scene.facts, scene.cell)
    told = reported.holder_pid if reported is not None else None
    return tuple(dict.fromkeys((*holders(scene), *((told,) if told is not None else ()))))


def _holding_ranks(scene: Scene) -> tuple[int, ...]:
    """The ranks that hold a lock which a suspect wants and keep it; none if the holder is none."""
    return () if _in_turn(scene) else _holders(scene)


def _holders(scene: Scene) -> tuple[int, ...]:
    """The ranks that hold a lock which a suspect wants, at the moment of the look."""
    held_by = set(_pids(scene))
    reported = import_lock_wait(scene.facts, scene.cell)
    if reported is not None and reported.holder_rank is not None:
        return (reported.holder_rank,)
    return tuple(
        rank
        for rank in scene.world
        if (process := scene.process(rank)) is not None and process.pid in held_by
    )


def _in_turn(scene: Scene) -> bool:
    """Whether ranks that get on hold it one after the other: nobody keeps it."""
    return scene.group.mode == "slow" and not scene.ranks and bool(_holders(scene))


def _ranks(scene: Scene) -> tuple[int, ...]:
    return _holding_ranks(scene) or scene.ranks


def _summary(scene: Scene) -> str:
    holder, holding = next(iter(_pids(scene)), 0), _holding_ranks(scene)
    who = f"{ranks_say(holding, capital=False)} (pid {holder})" if holding else f"pid {holder}"
    held = f", which {who} holds" if holder else ""
    wanting = tuple(sorted(rank for rank in scene.ranks if rank not in holding)) or scene.ranks
    if _in_turn(scene):
        return (
            f"The ranks wait for each other at the lock on {wanted_path(scene)}, which they take in"
            " turn"
        )
    if _no_locks(scene) is not None:
        return "A lock is asked for on a file system that has none"
    if importing := _imports_waiting(scene):
        return (
            f"The import of {importing[0].module} waits for the lock on"
            f" {importing[0].lock_paths[0]}{held}"
        )
    taken = [thread for thread in name_taken(scene) if thread.rank in wanting]
    if taken and not (holder or wanted_path(scene)):
        return (
            f"{subject(scene, wanting)} {verb(wanting, 'tries', 'try')} again and again at"
            f" {taken[0].where} to create a lock file that exists already"
        )
    return (
        f"{subject(scene, wanting)} {verb(wanting, 'waits', 'wait')} for the lock on"
        f" {wanted_path(scene) or _asked_for(scene) or 'a file'}{held}"
    )


def _asked_for(scene: Scene) -> str:
    """The file of which a log says last that its lock is wanted; empty where none says so."""
    asked = captured(scene.events("lock-waiting", "lock-asked"), "file")
    return asked[-1].strip() if asked else ""


IMPORT = """
See what the import of the holder waits for
    trainprobe attach {holder}   (on its host, while it lives)
Give a slow import the time that it needs
    trainprobe.import_lock(timeout_s=1800), or on_timeout="go-on" to go on without the lock
"""
OWN_RANK = """
Release the lock before {who} enters a collective
    {who} holds {path} while it waits at {at}
    do the file work, release the lock (of a database: commit), then enter the collective
"""
IN_TURN = """
Hold it for less time, or give each rank a lock of its own
    inside it only what must not happen twice at once; what takes time before it or after it
    one file for each rank, joined once at the end; readers: fcntl.LOCK_SH in place of LOCK_EX
"""
NAME_TAKEN = """
See which file it is, and who made it
    print the path that is opened at {at}; then: ls -l --time-style=full-iso on it
[disruptive] Remove it when the process that made it is gone
    rm that file   (only when no process of yours works under it)
Let the kernel release the lock
    fcntl.flock(open(path, 'w'), fcntl.LOCK_EX) in place of a file that exists: it ends with its
        process
"""
NO_LOCKS = """
Keep caches with locks off that file system
    export HF_HOME=/local/cache; export TORCH_EXTENSIONS_DIR=/local/ext; export TMPDIR=/local/tmp
[admin] Mount it with locks
    flock among the options of mount (Lustre), local_lock=flock (NFS)
"""
USUAL = """
See who holds it
    {look}
    {owner}
    verify: flock --nonblock {path} true && echo free
[disruptive] {release}
    {end}
"""
CACHES = """
Keep the caches of libraries, with their locks, off the network file system
    export HF_HOME=/local/cache
    export TORCH_EXTENSIONS_DIR=/local/ext
"""
SHORTER = """
Hold it for less time
    begin a transaction when its data are ready, and commit before anything slow; back a database
        up without a transaction of one's own around it
"""
OWN_LOCK = """
Give the wait an end
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)   (in a loop that raises after a while)
"""


def _fixes(scene: Scene) -> Fixes:
    holder, path = next(iter(_pids(scene)), 0), wanted_path(scene) or _asked_for(scene)
    holding, importing = _holding_ranks(scene), _imports_waiting(scene)
    if _no_locks(scene) is not None:
        return fixes(NO_LOCKS)
    if holding and import_lock_wait(scene.facts, scene.cell) is not None:
        return fixes(IMPORT, holder=holder)
    if _in_turn(scene):
        return fixes(IN_TURN)
    if holding:
        places = (thread.where for thread in scene.threads(holding) if thread.where)
        at, who = next(places, "its next collective"), ranks_say(holding, capital=False)
        return fixes(OWN_RANK, who=who, path=path, at=at)
    if not (path or holder or importing):
        places = (thread.where for thread in name_taken(scene) if thread.where)
        return fixes(NAME_TAKEN, at=next(places, "the line that the stack shows"))
    path = path or next((tried.lock_paths[0] for tried in importing), "the lock file")
    look, owner, end = f"fuser -v {path}", "", f"rm {path}   (only when nobody holds it)"
    release = "Remove the lock file, if whoever made it is gone"
    if holder:  # a lock of the kernel, which goes with its process and not with the file
        release = "End the holder if it is left over: that frees the job at once"
        look, owner = f"trainprobe attach {holder}", f"ps -o pid,ppid,lstart,cmd -p {holder}"
        end = f"kill {holder}"
    usual = fixes(USUAL, look=look, owner=owner, path=path, end=end, release=release)
    if asked_inside_a_call(scene):
        return (*usual, *fixes(SHORTER))
    return (*usual, *fixes(OWN_LOCK if _locks_itself(scene) else CACHES))


def _locks_itself(scene: Scene) -> bool:
    """Whether the program's own line takes the lock, and no library's."""
    threads = [thread for thread in scene.threads(_ranks(scene)) if thread.op == "flock"]
    return bool(threads) and all(is_user(thread.frames[-1]) for thread in threads if thread.frames)


CAUSE = Cause(
    id="file-lock-held",
    title="A file lock is held by somebody else",
    modes=("hang", "slow", "crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    pids=_pids,
    would_settle="cat /proc/locks, and fuser -v on the lock file",
    refines="rank-stuck",
    accounts_for=("user-exception", "import-hang"),
    wording=GAVE_UP,
)
