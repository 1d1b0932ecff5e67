"""A native thread pool was forked while in use and never answers in the child.

OpenMP, MKL, OpenBLAS, OpenCV and the Rust pool of tokenizers keep threads. A forked child has the
pool's memory but none of its threads: the first tensor operation there hands work to threads that
do not exist and waits for them for ever.

Seen here on Linux with GNU's OpenMP, which comes with torch. Intel's is said to survive a fork
(pytorch/pytorch#45198), which was not tried here; nor was a Mac, where processes are spawned by
default.

It is recognised by the probe that forks after the script's imports and its data are there, and, in
a run, by a forked rank that stands still inside such a pool, and by a forked child with a single
thread that sleeps in a futex below a computation, not below
a lock of Python, while its parent, which has such threads, waits for it. A native stack names the
library and settles it; so does the warning that tokenizers prints.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import busy_children, started_afresh, waits_for_child, who
from trainprobe.causes.fork_probe import tried, weigh_elsewhere, weigh_tried
from trainprobe.causes.phrases import Fixes, fix, fixes, native_stack, ranks_say, verb
from trainprobe.causes.processes.fork_inherited_lock import TAKES_A_LOCK
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.causes.statements import quote
from trainprobe.facts import LogEvent, LogJob, MainThread, Thread

POOLS = re.compile(
    r"lib(?:g|i)?omp|libmkl|openblas|tokenizers.*\.so|rayon|cv2.*\.so|libtbb|GOMP_|gomp_|__kmp"
    r"|blas_thread|caffe2::.*ThreadPool|at::.*parallel"
)
MUTEX = re.compile(r"lll_lock_wait|pthread_mutex_lock")
COMPUTES = re.compile(
    r"/(?:torch/nn|torch/_tensor|torch/functional|torch/linalg|torch/optim|numpy|scipy|cv2"
    r"|tokenizers|transformers/tokenization\w*|sklearn|PIL)[/.]"
    r"|\btorch\.(?!load|save|distributed)\w+\(|\bnp\.\w+\(|\bcv2\.\w+\(|\.(?:mm|matmul|bmm|sum"
    r"|mean|add_|mul_|sort|svd|conv\dd|encode(?:_batch)?)\(|(?i:\btokenizer)\(| @ "
)


def _computing(scene: Scene) -> tuple[MainThread, ...]:
    """Forked children that sleep in a futex below no lock of Python."""
    found = [
        thread
        for thread in busy_children(scene)
        if thread.leaf == "lock" and thread.op == "futex" and thread.moved is not True
    ]
    return tuple(
        thread
        for thread in found
        if not any(TAKES_A_LOCK.search(site.text) for site in scene.sites(thread.frames[-1:]))
    )


def _pool(scene: Scene, pid: int) -> Thread | None:
    """The native stack of the child's main thread where it ends in a pool."""
    native = [fact for fact in scene.of_process(Thread, pid) if fact.native and fact.main]
    return first_found(
        fact
        for fact in native
        if any(POOLS.search(f"{frame.file} {frame.name}") for frame in fact.frames[-8:])
    )


def _ranks_in_a_pool(scene: Scene) -> tuple[MainThread, ...]:
    """Forked ranks that stand still below a native pool, whatever Python calls there."""
    return tuple(
        thread
        for thread in scene.threads(scene.world)
        if thread.moved is False
        and _pool(scene, thread.pid) is not None
        and (process := scene.process_of(thread.pid)) is not None
        and process.forked
        and not process.cpu_moved
    )


def _pasted_pool(scene: Scene) -> Thread | None:
    """A thread of a pasted native stack that waits for a mutex of a pool: a pool's own idle threads
    wait for work in a condition.
    """
    if scene.one(LogJob) is None or scene.group.mode != "hang":
        return None
    return first_found(
        thread
        for thread in scene.of(Thread)
        if thread.native
        and any(MUTEX.search(frame.name) for frame in thread.frames[-2:])
        and any(POOLS.search(frame.name) for frame in thread.frames[-4:])
    )


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_tried(tried(scene, "pool"))
    if not _computing(scene) and scene.group.mode == "hang" and not scene.threads(scene.world):
        hint = next(iter(scene.events("tokenizers-fork", "fork-threads")), None)
        if hint is not None:  # printed in many runs that go well: a hint, where no stack was taken
            yield quote(6, "It was warned of", hint)
    pasted = _pasted_pool(scene)
    if pasted is not None and not _computing(scene):
        name = next(frame.name for frame in reversed(pasted.frames) if POOLS.search(frame.name))
        says = f"A native stack in the text waits for a lock inside {name}"
        yield weighing(13, "suspects-stack", says, pasted)
    for rank in _ranks_in_a_pool(scene)[:1]:
        says = f"{who(rank)}, a forked process, waits inside {_library(scene, rank)} for a pool"
        yield weighing(26, "suspects-stack", says, _pool(scene, rank.pid))
    for child in _computing(scene)[:1]:
        yield from _weigh_child(scene, child)


def _weigh_child(scene: Scene, child: MainThread) -> Weighings:
    process, pool = scene.process_of(child.pid), _pool(scene, child.pid)
    if pool is not None:
        says = f"{who(child)} waits inside {_library(scene, child)} for threads of a pool"
        yield weighing(26, "suspects-stack", says, pool)
    elif _computes(scene, child):
        points = 13 if child.moved is False else 6
        says = (
            f"{who(child)} sleeps in a futex below a computation at {child.where} in"
            f" {child.looks} looks"
        )
        yield weighing(points, "suspects-stack", says, child)
    else:
        says = f"{who(child)} sleeps in a futex at {child.where}, below no lock of Python"
        yield weighing(3, "suspects-stack", says, child)
    if started_afresh(scene, child):
        says = "That child was started afresh and made its pool itself"
        yield weighing(-26, "process-state-and-locks", says, process)
    elif process is not None and process.threads == 1:
        says = "It is the only thread of a forked process: the pool's threads did not come along"
        yield weighing(10, "process-state-and-locks", says, process)
    elif process is not None and process.threads > 2:
        says = f"It has {process.threads} threads, so its pool may well be its own"
        yield weighing(-13, "process-state-and-locks", says, process)
    parents = [thread for thread in scene.threads(scene.ranks) if waits_for_child(thread)]
    if parents:
        says = f"{ranks_say(scene.ranks)} {verb(scene.ranks, 'waits', 'wait')} for that child"
        yield weighing(6, "other-stacks", says, *parents)
    yield from weigh_elsewhere(scene, "pool")
    warned = [
        event for event in scene.of(LogEvent) if event.event in ("tokenizers-fork", "fork-threads")
    ]
    if warned:
        yield weighing(10, "suspects-log", f"It was warned of: {warned[0].line[:120]}", *warned[:1])


def _computes(scene: Scene, child: MainThread) -> bool:
    texts = [site.text for site in scene.sites(child.frames[-1:])]
    return any(
        COMPUTES.search(text) for text in (*texts, *(frame.file for frame in child.frames[-2:]))
    )


def _library(scene: Scene, thread: MainThread) -> str:
    """The library or function of the pool in which it waits."""
    pool = _pool(scene, thread.pid)
    frame = next(
        frame
        for frame in reversed(pool.frames if pool is not None else thread.frames)
        if POOLS.search(f"{frame.file} {frame.name}")
    )
    return frame.file.rsplit("/", 1)[-1] or frame.name


def _pids(scene: Scene) -> tuple[int, ...]:
    return tuple(thread.pid for thread in _computing(scene) or _ranks_in_a_pool(scene))


def _summary(scene: Scene) -> str:
    if (failure := tried(scene, "pool")) is not None:
        return failure.says
    child = next(iter(_computing(scene) or _ranks_in_a_pool(scene)), None)
    if child is None and _pasted_pool(scene) is not None:
        return "A process waits inside a native thread pool for a lock, as one does that was forked"
    if child is None:
        return (
            f"{ranks_say(scene.ranks)} may wait for a forked child whose native thread pool did not"
            " come along: it was warned of that"
        )
    return (
        f"{who(child)} waits at {child.where or 'a computation'} for threads of a native pool that"
        " were not forked with it"
    )


def _fixes(scene: Scene) -> Fixes:
    pid = next(iter(_pids(scene)), 0)
    known = tried(scene, "pool") is not None
    return (
        *(() if known else (fix("Name the library", *native_stack(scene, "the child", pid)),)),
        *(
            (
                fix(
                    "Use one thread before the fork",
                    "export OMP_NUM_THREADS=1",
                    "torch.set_num_threads(1) above the step that is named",
                ),
            )
            if known
            else ()
        ),
        *fixes("""
            One thread in the workers
                worker_init_fn=lambda _: torch.set_num_threads(1)
                export TOKENIZERS_PARALLELISM=false
                cv2.setNumThreads(0)
            Or start the workers afresh
                DataLoader(..., multiprocessing_context='spawn')   or 'forkserver'
        """),
    )


CAUSE = Cause(
    id="fork-thread-pool",
    title="A thread pool did not survive a fork",
    modes=("hang", "slow", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    pids=_pids,
    would_settle=(
        "py-spy dump --native --pid <PID>   (the child's: is its leaf in libgomp, libiomp, openblas"
        " or tokenizers?)"
    ),
    refines="rank-stuck",
    accounts_for=("data-worker-stuck",),
)
