"""A loader worker lives but never answers.

The training process waits in its data loader. The worker that must answer stands still: in a read
that does not return, in a lock, in a download, in code of the dataset. Idle workers wait for the
training process and carry no blame.

It is recognised by the rank's main thread in the data loader and by a worker's main thread that
stands at one place in all looks, or goes round in one `while` loop of plain Python while all ranks
have waited for a minute. Any other worker that moves on is slow, not stuck. Where all workers are
idle while the rank of a hung job waits for a batch, that batch was lost between them: what cannot
be pickled raises in the thread that feeds the worker's queue, which prints it and goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import circling_worker, who
from trainprobe.causes.phrases import (
    Fixes,
    fix,
    fixes,
    mend_loop,
    native_stack,
    ranks_say,
    short,
    subject,
    verb,
)
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.causes.statements import first_to_fail, statement, weigh_statement
from trainprobe.causes.user_objects import broken, weigh_broken
from trainprobe.facts import MainThread, RankException, Samples, Thread
from trainprobe.signatures.messages import message
from trainprobe.stacks.next_calls import is_next_call
from trainprobe.stacks.places import user_frame

IDLE = "worker-idle"
WORDING = message("data-worker-stuck")


def _busy(scene: Scene) -> tuple[MainThread, ...]:
    """Workers that were given something to do, those that stand still first."""
    found = [thread for thread in scene.workers(scene.ranks) if thread.leaf != IDLE]
    return tuple(sorted(found, key=lambda thread: thread.moved is not False))


def _weigh(scene: Scene) -> Weighings:
    found = tuple(weigh_statement(scene, WORDING))
    yield from found
    stood = broken(scene, "stood")
    if stood is not None and stood.details.get("in_worker"):
        yield from weigh_broken(stood, 26)
    if found and scene.group.mode == "crash":
        yield from first_to_fail(scene)
    if joining := _at_their_end(scene):
        says = f"{ranks_say(scene.ranks)} waits for a worker of its loader to end, and it does not"
        yield weighing(13, "suspects-stack", says, *joining)
    parents = _parents(scene)
    if not parents or (scene.group.mode == "slow" and scene.of(Samples)):
        return  # a job that was sampled as it moves gets its batches
    says = (
        f"{ranks_say(scene.ranks)} {verb(scene.ranks, 'waits', 'wait')} in the data loader for a"
        " worker"
    )
    yield weighing(6, "other-stacks", says, *parents)
    busy, workers = _busy(scene), scene.workers(scene.ranks)
    still = [thread for thread in busy if thread.moved is False]
    if still:
        says = (
            f"Worker {still[0].pid} stands at {still[0].where or 'one place'} in all"
            f" {still[0].looks} looks"
        )
        yield weighing(13, "suspects-stack", says, *still)
        process = scene.process_of(still[0].pid)
        if process is not None and process.state in ("S", "D", "T"):
            points = 6 if process.state != "T" else 3
            says = f"It is in state {process.state} and uses no CPU"
            yield weighing(points, "process-state-and-locks", says, process)
    elif (circling := circling_worker(scene)) is not None:
        yield from _weigh_circling(scene, circling)
    elif any(thread.moved for thread in busy):
        yield weighing(
            -10, "suspects-stack", f"Worker {busy[0].pid} moves on between the looks", *busy
        )
    elif (
        not workers and scene.group.mode == "hang" and (waiting := _at_their_queue(scene, parents))
    ):
        says = "It waits at the queue that the workers fill, and none of them hands anything on"
        if any(thread.op == "prefetch" for thread in parents):
            says = "It waits at the queue that a thread of its own fills, and nothing comes"
        yield weighing(6, "suspects-stack", says, *waiting)
    elif busy and scene.group.mode == "hang":
        says = f"{who(busy[0])} stood at {busy[0].where or 'one place'} in the one look at it"
        yield weighing(6, "suspects-stack", says, *busy)
    elif workers and not busy:
        yield from _weigh_idle(scene)


def _weigh_circling(scene: Scene, worker: MainThread) -> Weighings:
    says = (
        f"Worker {worker.pid} goes round at {worker.where} in all {worker.looks} looks, and hands"
        " nothing on"
    )
    yield weighing(13, "suspects-stack", says, worker)
    circle = scene.watch.circle(worker.pid)
    if circle is not None:
        says = f"Read again and again, {circle.says}"
        yield weighing(10, "probe-outcome", says, *circle.values)
    else:
        says = "All other ranks have waited for it for a minute or longer"
        yield weighing(6, "process-state-and-locks", says, *scene.threads(scene.others))


def _parents(scene: Scene) -> tuple[MainThread, ...]:
    """The suspects' main threads that wait in their loaders."""
    return tuple(thread for thread in scene.threads(scene.ranks) if thread.leaf == "dataloader")


def _lost(scene: Scene) -> tuple[MainThread, ...]:
    """The workers, where a rank of a hung job waits in its loader and all its workers wait for
    work: it asks for a batch before it waits for it, and one that answered late would be here.
    """
    workers, parents = scene.workers(scene.ranks), _parents(scene)
    stay = all(one.leaf == IDLE and one.looks > 1 for one in workers)
    waits = bool(parents) and all(
        one.moved is False and any(frame.name.endswith("_next_data") for frame in one.frames)
        for one in parents
    )
    hung = scene.live is not None and scene.group.mode == "hang"
    return workers if hung and workers and stay and waits else ()


def _weigh_idle(scene: Scene) -> Weighings:
    lost = _lost(scene)
    if not lost:
        workers = scene.workers(scene.ranks)
        says = f"All {len(workers)} workers are idle and wait for work themselves"
        yield weighing(-13, "suspects-stack", says, *workers)
        return
    says = (
        f"{_all(lost)} for its next batch, while {ranks_say(scene.ranks, capital=False)} waits"
        " for one that it has asked for: that one was lost on the way"
    )
    yield weighing(13, "suspects-stack", says, *lost)
    if (error := _in_a_feeder(scene)) is not None:
        says = f"A worker printed {error.type} as it packed a batch for its queue"
        yield weighing(10, "suspects-log", says, error)


def _all(workers: Sequence[MainThread]) -> str:
    return f"All {len(workers)} workers wait" if len(workers) > 1 else "Its only worker waits"


def _in_a_feeder(scene: Scene) -> RankException | None:
    """The last exception that a queue's feeding thread printed: what it packs is then lost."""
    told = (*scene.of(RankException, rank=None), *scene.of(RankException, rank=scene.ranks[0]))
    return first_found(
        one
        for one in reversed(told)
        if one.frames
        and one.frames[0].name.endswith("_feed")
        and one.frames[0].file.endswith("/queues.py")
    )


def _at_their_end(scene: Scene) -> tuple[MainThread, ...]:
    """Main threads that wait for the end of workers of which nothing was seen."""
    if scene.children(scene.ranks):
        return ()
    return tuple(
        thread
        for thread in scene.threads(scene.ranks)
        if thread.leaf in ("child-wait", "teardown")
        and any(
            frame.file.endswith("torch/utils/data/dataloader.py")
            and frame.name.endswith("_shutdown_workers")
            for frame in thread.frames
        )
    )


def _at_their_queue(scene: Scene, parents: Sequence[MainThread]) -> tuple[MainThread | Thread, ...]:
    """A rank's main thread at the queue of its workers, or its pinning thread, which serves it."""
    pinning = [
        thread
        for thread in scene.of(Thread)
        if thread.rank in scene.ranks
        and any("_pin_memory_loop" in f"{thread.name} {frame.name}" for frame in thread.frames)
        and any(frame.file.endswith("multiprocessing/connection.py") for frame in thread.frames)
    ]
    direct = [
        thread
        for thread in parents
        if thread.op == "prefetch"
        or is_next_call(thread.frames[-1])  # what is below was cut off
        or any(frame.file.endswith("multiprocessing/queues.py") for frame in thread.frames)
    ]
    return (*direct, *pinning)


def _pids(scene: Scene) -> tuple[int, ...]:
    if (circling := circling_worker(scene)) is not None:
        return (circling.pid,)
    return tuple(thread.pid for thread in _busy(scene) if thread.moved is False)


def _summary(scene: Scene) -> str:
    busy, found, stood = _busy(scene), statement(scene, WORDING), broken(scene, "stood")
    if not busy and found is None and _at_their_end(scene):
        return f"{subject(scene)} waits for a worker of its data loader to end, and it does not"
    if stood is not None and not busy and found is None:
        return f"A loader worker does not answer: {stood.says}"
    if found is not None and not busy:
        return (
            f"{subject(scene)} had no batch from its loader workers in time: {found.match.group(0)}"
        )
    if found is None and _lost(scene):
        error = _in_a_feeder(scene)
        why = f": {error.type}: {short(error.message, 80)}" if error is not None else ""
        return (
            f"{subject(scene)} waits in its data loader for a batch that is lost, while its"
            f" workers wait for work{why}"
        )
    worker = " a worker that does not answer"
    if (circling := circling_worker(scene)) is not None:
        worker = f" worker {circling.pid}, which goes round at {circling.where}"
        if (circle := scene.watch.circle(circling.pid)) is not None:
            worker += f": {circle.says}"
    elif busy:
        name = f" worker {busy[0].pid}" if busy[0].pid > 0 else " a worker"
        worker = f"{name}, which stands at {busy[0].where or busy[0].leaf}"
    return f"{subject(scene)} {verb(scene.ranks, 'waits', 'wait')} in the data loader for{worker}"


def _fixes(scene: Scene) -> Fixes:
    busy, circling = _busy(scene), circling_worker(scene)
    where = busy[0].where if busy else ""
    if circling is not None and scene.watch.circle(circling.pid) is not None:
        return (
            *mend_loop(circling.where),
            fix("Let it fail loudly", "DataLoader(..., timeout=120)"),
        )
    if _lost(scene):
        error = _in_a_feeder(scene)
        frame = user_frame(error.frames) if error is not None else None
        return (
            fix(
                "Mend what a worker cannot hand over",
                f"open {frame.where}" if frame is not None else "",
                "load each sample whole in __getitem__, and return tensors, numbers and text",
                "look in the log for a traceback that ends in multiprocessing/queues.py, _feed",
            ),
            fix("Let it fail loudly", "DataLoader(..., timeout=120)"),
            fix("See the error where it is raised", "DataLoader(..., num_workers=0)"),
        )
    return (
        fix(
            "See what the worker waits for",
            f"open {where}" if where else "",
            *native_stack(scene, "the worker", busy[0].pid if busy else 0),
        ),
        fix(
            "Load by one process, to see how long a sample takes",
            "DataLoader(..., num_workers=0, timeout=0)",
        )
        if statement(scene, WORDING) is not None
        else fix("Let it fail loudly", "DataLoader(..., timeout=120)"),
        *fixes("""
            Rule out the fork
                DataLoader(..., multiprocessing_context='spawn')   or num_workers=0
        """),
    )


CAUSE = Cause(
    id="data-worker-stuck",
    title="A loader worker does not answer",
    modes=("hang", "slow", "crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    pids=_pids,
    would_settle="py-spy dump --native on the worker while it hangs",
    refines="rank-stuck",
    accounts_for=("user-exception",),
    wording=WORDING,
)
