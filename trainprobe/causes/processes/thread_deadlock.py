"""Threads of one process wait for each other's locks, or one for a lock that it holds itself.

Thread A holds one lock and wants a second; thread B holds the second and wants the first. So does a
thread that joins another while it holds what that one wants, and one that takes a lock twice which
is not made for that. A log handler that takes a lock closes such a circle with a thread that logs
while it holds that lock: a handler's own lock is held while it writes. So does a pool of threads
all of whose tasks wait for what only a further task can bring: the result of another task of the
pool, or, in a server of torch's RPC, a request from ranks that wait for their answers.

It is recognised by threads of one process that stand at lines which take a lock, each below a
`with` on the lock that the next one wants; logging's lock by the frames of its handlers. The names
are read from the source, so two locks of one name would look like one. A pool is recognised by all
of its threads standing in such a wait in two looks. Threads that move on rule it out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import ends, others_wait, threads_of
from trainprobe.causes.exhausted_pools import exhausted_pool
from trainprobe.causes.phrases import Fixes, file_line, fixes, short, subject, verb
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.facts import SourceSite, Thread
from trainprobe.stacks.places import is_user
from trainprobe.stacks.rules import RPC


def _weigh(scene: Scene) -> Weighings:
    found = circle(scene)
    if (kept := keeper(scene)) is not None:
        yield weighing(13, "suspects-stack", _kept_says(kept), kept.waiting.thread, kept.thread)
        text = "The source around those lines shows who holds that lock"
        yield weighing(10, "source", text, *scene.sites(kept.thread.frames))
        yield from others_wait(scene)
        return
    if not found:
        pool = exhausted_pool(scene)
        if pool is not None:
            text = f"Of the pool in pid {pool.threads[0].pid}, {pool.says}"
            yield weighing(13, "suspects-stack", text, *pool.threads)
            yield from others_wait(scene)
        return
    threads = [one.thread for one in found]
    yield weighing(13, "suspects-stack", f"In pid {threads[0].pid}, {says(found)}", *threads)
    text = "The source around those lines closes the circle"
    yield weighing(
        10, "source", text, *(site for one in found for site in scene.sites(one.thread.frames))
    )
    main = first_found(
        thread
        for thread in (*ends(scene), *scene.threads(scene.suspects))
        if thread.pid == threads[0].pid
    )
    if main is not None and main.moved:
        yield weighing(-13, "suspects-stack", "Its main thread moves on between the looks", main)
    yield from others_wait(scene)


def _pids(scene: Scene) -> tuple[int, ...]:
    pool = exhausted_pool(scene)
    threads = [one.thread for one in circle(scene)] or (pool.threads if pool else ())
    if not threads and (kept := keeper(scene)) is not None:
        return (kept.thread.pid,)
    return tuple(dict.fromkeys(thread.pid for thread in threads))


def _ranks(scene: Scene) -> tuple[int, ...]:
    """Of several suspects those whose threads keep the locks: the others wait for their answers."""
    kept = keeper(scene)
    threads = [kept.thread] if kept is not None else [one.thread for one in circle(scene)]
    own = sorted({thread.rank for thread in threads if thread.rank in scene.ranks} - {None})
    return tuple(own) or scene.ranks


def _kept_says(kept: Keeper) -> str:
    wants = kept.waiting
    return (
        f"{_who(wants.thread)} at {wants.where} wants {wants.wants}, which {_who(kept.thread)}"
        f" keeps while it waits at {kept.where} (`{short(kept.text, 60)}`) for what another has to"
        " bring"
    )


def _summary(scene: Scene) -> str:
    if (kept := keeper(scene)) is not None:
        who = f"{subject(scene, _ranks(scene))} (pid {kept.thread.pid})"
        return f"{who} has a thread that keeps a lock: {_kept_says(kept)}"
    if not circle(scene) and (pool := exhausted_pool(scene)) is not None:
        has = verb(scene.ranks, "has", "have")
        return f"{subject(scene)} (pid {_pids(scene)[0]}) {has} a pool of threads: {pool.says}"
    found = circle(scene)
    who = f"{subject(scene, _ranks(scene))} (pid {_pids(scene)[0]})"
    if len(found) > 1:
        return f"{who} has threads that wait for each other: {says(found)}"
    waits = "waits" if found[0].thread.main else "has a thread that waits"
    return f"{who} {waits} for a lock that it holds itself: {says(found)}"


FIXES = """
Take the locks in one order
    look at {places}: every thread must take them in the same order
    or release the first before the second
Or hold no lock while others are called
    no callback and no join while a lock is held
"""


OWN_FIXES = """
Take the lock once
    {places} runs while it is held: call there a variant of the function that takes no lock
Or let one thread take it more than once
    threading.RLock() instead of threading.Lock()
"""


POOL_FIXES = """
Let no task of a pool wait for another
    at {places}: return at once, and let whoever needs the result ask again or pass a callback
    for torch's RPC: @rpc.functions.async_execution with a Future that the last caller sets
Or give the pool as many threads as tasks can wait
    ThreadPoolExecutor(max_workers=...); rpc.TensorPipeRpcBackendOptions(num_worker_threads=...)
"""


CALLBACK_FIXES = """
Wait for nothing in a callback of a collective
    at {places}: return a future in place of a value: torch.futures.collect_all([a, b]).then(...)
Or give what it waits for threads of its own
    own = torch.distributed.new_group(backend="gloo"), and make that collective on it
"""


KEEPER_FIXES = """
Wait without the lock
    at {place}: take what is waited for first, and the lock after it
Let waits end
    queue.get(timeout=60), event.wait(60) or future.result(timeout=60), and release the lock on
        queue.Empty or TimeoutError
"""


def _fixes(scene: Scene) -> Fixes:
    if (kept := keeper(scene)) is not None:
        return fixes(KEEPER_FIXES, place=kept.where)
    if not circle(scene) and (pool := exhausted_pool(scene)) is not None:
        return fixes(CALLBACK_FIXES if pool.callbacks else POOL_FIXES, places=pool.where)
    found = circle(scene)
    places = " and ".join(one.where for one in found)
    return fixes(FIXES if len(found) > 1 else OWN_FIXES, places=places)


# What locks the threads of one process want and hold, as the source around their lines spells
# them. A Python lock shows neither its `acquire` frame nor its owner: a futex is all that the
# kernel tells. The text of the user's own lines is what is left.
_WANTS = re.compile(
    r"\bwith\s+(?P<with>[\w.\[\]'\"]+)(?:\s+as\s+\w+)?\s*(?:,.*)?:|(?P<call>[\w.\[\]]+)\.acquire\("
)
_JOINS = re.compile(r"[\w.\[\]]+\.join\(\)?")
_NO_LOCKS = re.compile(
    r"no_grad|open|autocast|profiler|inference_mode|join|catch_warnings|suppress"
)


# queue.Queue.get, Event.wait and Condition.wait, Future.result
_BROUGHT = frozenset({"queue.py", "threading.py", "_base.py"})
LONGEST = 3  # threads before the last in a circle


@dataclass(frozen=True)
class Waiting:
    """A thread at a line that takes a lock: the locks it wants and holds, as in the source, and
    the line at which it took each, empty for logging's.
    """

    thread: Thread
    where: str
    wants: str
    holds: Mapping[str, str]
    joins: bool


def _name(spelled: str) -> str:
    return spelled.rsplit(".", 1)[-1]


# Handler.handle() holds the handler's lock around emit(), and takes it in acquire(), from Python
# 3.13 on in handle() itself.
_LOGGING = re.compile(r"(?:^|/)logging/__init__\.py$")
HANDLERS_LOCK = "the lock of logging's handler"


def _wants_handler(thread: Thread) -> bool:
    last = thread.frames[-1]
    return _LOGGING.search(last.file) is not None and last.function in ("acquire", "handle")


def _holds_handler(thread: Thread) -> bool:
    return any(
        _LOGGING.search(outer.file) is not None
        and outer.name.endswith("handle")
        and inner.name.endswith("emit")
        for outer, inner in pairwise(thread.frames)
    )


def _waiting(scene: Scene, thread: Thread) -> Waiting | None:
    own = [frame for frame in thread.frames if is_user(frame)]
    sites = scene.sites(own[-1:])
    if not sites:
        return None
    here = sites[-1]
    logs = _wants_handler(thread)
    match = None if logs else _WANTS.search(here.text)
    joins = (
        match is None
        and not logs
        and _JOINS.search(here.text) is not None
        and any(frame.base == "threading.py" for frame in thread.frames[-4:])
    )
    if match is None and not joins and not logs:
        return None
    wanted = _name(match["with"] or match["call"]) if match is not None else ""
    if logs:
        wanted = HANDLERS_LOCK
    holds = _holds(scene, thread, here)
    return Waiting(thread, file_line(here.file, here.line), wanted, holds, joins)


def _holds(scene: Scene, thread: Thread, here: SourceSite) -> dict[str, str]:
    """The locks below whose `with` it stands, and where that is; `here` is its own line."""
    found: dict[str, str] = {}
    for site in scene.sites([frame for frame in thread.frames if is_user(frame)]):
        for block in site.blocks:
            if block.kind != "with" or (site is here and block.line == here.line):
                continue
            taken = _WANTS.search(block.text)
            if taken is not None and taken["with"] and not _NO_LOCKS.search(_name(taken["with"])):
                found[_name(taken["with"])] = file_line(site.file, block.line)
    if _holds_handler(thread):
        found[HANDLERS_LOCK] = ""
    return found


@dataclass(frozen=True)
class Keeper:
    """`waiting` wants a lock, which `thread` keeps while it waits itself, at `where`, for something
    that another has to bring.
    """

    waiting: Waiting
    thread: Thread
    where: str
    text: str


def keeper(scene: Scene) -> Keeper | None:
    """A thread that keeps a lock and waits for a queue, an event, a result or a remote call, and
    another thread of that process that wants the lock: where the second is the one to bring it, or
    others wait for the second, nobody gets on. None where a circle of locks tells more.
    """
    if circle(scene):
        return None
    for main in ends(scene):
        threads = threads_of(scene, main.pid)
        wanting = [
            one for thread in threads if (one := _waiting(scene, thread)) is not None and one.wants
        ]
        for thread in threads:
            sites = scene.sites([frame for frame in thread.frames if is_user(frame)][-1:])
            remote = thread.main and main.op == RPC
            if not wanting or not sites or not (remote or _awaits_another(thread)):
                continue
            held = _holds(scene, thread, sites[-1])
            for one in wanting:
                if one.thread.main == thread.main or one.wants not in held:
                    continue
                if f"{one.wants}.wait" not in sites[-1].text:  # a condition's own lock
                    where = file_line(sites[-1].file, sites[-1].line)
                    return Keeper(one, thread, where, sites[-1].text)
    return None


def _awaits_another(thread: Thread) -> bool:
    return any(
        frame.function in ("get", "wait", "result") and frame.base in _BROUGHT
        for frame in thread.frames[-4:]
    )


def circle(scene: Scene) -> tuple[Waiting, ...]:
    """Threads of one process that wait for each other, or one that wants what it holds."""
    for pid in dict.fromkeys(
        thread.pid for thread in (*ends(scene), *scene.threads(scene.suspects))
    ):
        found = [
            one for thread in threads_of(scene, pid) if (one := _waiting(scene, thread)) is not None
        ]
        for one in found:
            if one.wants in one.holds and one.wants != HANDLERS_LOCK:  # that one is an RLock
                return (one,)
            if closed := _round((one,), found):
                return closed
    return ()


def _round(way: tuple[Waiting, ...], all_of: Sequence[Waiting]) -> tuple[Waiting, ...]:
    """The way from thread to thread, each waiting for the next, on until it is closed; empty
    where it does not close.
    """
    for other in all_of:
        if other in way or not (way[-1].wants in other.holds or way[-1].joins):
            continue
        longer = (*way, other)
        if way[0].holds and other.wants in way[0].holds:
            return longer
        if len(way) < LONGEST and not way[-1].joins and (found := _round(longer, all_of)):
            return found
    return ()


def says(threads: tuple[Waiting, ...]) -> str:
    """Who wants what and holds what, in words."""
    if len(threads) == 1:
        (one,) = threads
        taken = f", taken at {one.holds[one.wants]}" if one.holds[one.wants] else ", its own"
        return f"{_who(one.thread)} at {one.where} wants {one.wants}{taken}"
    parts = []
    for one in threads:
        wants = "joins a thread" if one.joins else f"wants {one.wants}"
        parts.append(
            f"{_who(one.thread)} at {one.where} {wants} and holds {', '.join(sorted(one.holds))}"
        )
    return "; ".join(parts)


def _who(thread: Thread) -> str:
    return "MainThread" if thread.main else thread.name or f"thread {thread.os_thread_id}"


CAUSE = Cause(
    id="thread-deadlock",
    title="Deadlock of threads within one process",
    modes=("hang", "slow"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    pids=_pids,
    would_settle=(
        "py-spy dump --pid <PID>, and the source around the lines at which its threads take locks"
    ),
    refines="rank-stuck",
    accounts_for=("data-worker-stuck", "fork-inherited-lock"),
)
