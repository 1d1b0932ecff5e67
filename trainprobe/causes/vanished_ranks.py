"""A rank of a live job without a process: how it left, as far as that still shows."""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.causes.awaited import at_exit
from trainprobe.causes.child_processes import who
from trainprobe.causes.last_printed import last_printed, said_by_one
from trainprobe.causes.network.rendezvous_incomplete import absent, past_rendezvous
from trainprobe.causes.phrases import ranks_say, short, verb
from trainprobe.causes.remote_calls import talking
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import MainThread

_ENDS_ALL = frozenset({"torchrun", "accelerate", "deepspeed", "mpirun"})


def ends_all_on_failure(scene: Scene) -> bool:
    """Whether the launcher ends every rank as soon as one fails, so that one which is missing
    beside live ones has not failed.

    Of Python programs that start their ranks themselves, those do that wait in torch's own join
    of them (torch/multiprocessing/spawn.py).
    """
    job = scene.live
    if job is None or job.launcher_pid is None:
        return False
    if job.launcher != "spawn":
        return job.launcher in _ENDS_ALL
    return any(
        frame.file.endswith("torch/multiprocessing/spawn.py")
        for thread in scene.of(MainThread)
        if thread.pid == job.launcher_pid
        for frame in thread.frames
    )


def all_at_exit(scene: Scene) -> bool:
    """Are all live ranks at their end too, and kept from it? Then nobody needs the others."""
    threads = scene.threads(scene.world)
    return bool(threads) and all(at_exit(thread) for thread in threads)


def others_go_on(scene: Scene) -> Weighings:
    """Those that live wait for the one that is gone, or stand still since; how it left, that does
    not say.
    """
    waiting = scene.waiting(scene.world)
    if waiting:
        says = (
            f"{ranks_say([t.rank or 0 for t in waiting])} still wait in"
            f" {waiting[0].op or 'a collective'}"
        )
        yield weighing(10, "other-stacks", says, *waiting)
    elif still := [thread for thread in scene.threads(scene.world) if thread.moved is False]:
        ranks = [thread.rank or 0 for thread in still]
        says = (
            f"{ranks_say(ranks)} {verb(ranks, 'stands', 'stand')} still at {still[0].where}"
            " meanwhile"
        )
        yield weighing(6, "other-stacks", says, *still)


def outlived_by(scene: Scene, away: Sequence[int]) -> tuple[MainThread, ...]:
    """Processes that multiprocessing made for ranks that are gone: a program that comes to its end
    joins or ends these (multiprocessing.util._exit_function), one that is killed does not.
    """
    return tuple(
        thread
        for rank in away
        for thread in scene.of(MainThread, rank=rank)
        if thread.role != "rank"
        and any(
            frame.base == "process.py" and frame.name.endswith("_bootstrap")
            for frame in thread.frames
        )
    )


def gone(scene: Scene) -> Weighings:
    """Ranks without a process although the others were past the rendezvous."""
    job = scene.live
    away = absent(scene)
    if (
        job is None
        or not away
        or job.elsewhere
        or scene.endings(away)
        or not past_rendezvous(scene)
    ):
        return
    if all_at_exit(scene):
        ending = scene.threads(scene.world)
        says = (
            f"{ranks_say([t.rank or 0 for t in ending])} came to the end too and only cannot leave:"
            " nobody needs the others"
        )
        yield weighing(-26, "other-stacks", says, *ending)
        return
    if asks := talking(scene):
        says = f"{who(asks[0])} stands in a network call of its own: it needs no other rank"
        yield weighing(-13, "other-stacks", says, *asks)
        return
    yield from others_go_on(scene)
    if left := outlived_by(scene, away):
        says = f"Pid {left[0].pid}, which it had forked, lives on: it did not come to its end"
        yield weighing(-13, "process-state-and-locks", says, *left)
    absentees = f"{ranks_say(away)} of {job.world_size or len(scene.world)}"
    if ends_all_on_failure(scene):
        says = (
            f"{absentees} {verb(away, 'has', 'have')} no process, and {job.launcher} (pid"
            f" {job.launcher_pid}) has not ended the others: {verb(away, 'it', 'they')} left with"
            " exit code 0"
        )
        yield weighing(13, "exit-status", says, job)
    else:
        yield weighing(
            6, "exit-status", f"{absentees} {verb(away, 'has', 'have')} no process any more", job
        )
    yield from _last_words(scene, away)


def _last_words(scene: Scene, away: Sequence[int]) -> Weighings:
    """A rank that finishes says so, or says nothing; one that breaks leaves a traceback."""
    broke = [*scene.exceptions(away), *scene.exceptions(away, echo=True), *scene.fatals(away)]
    if broke:
        who = ranks_say(sorted({one.rank for one in broke if one.rank is not None}))
        yield weighing(-26, "suspects-log", f"The output of {who} ends with an error", *broke)
        return
    heard = [(rank, words) for rank in away if (words := last_printed(scene, rank)) is not None]
    if not heard and len(away) == 1 and (one := said_by_one(scene)) is not None:
        says = f"One of the ranks said «{short(one.ends, 100)}», which those that live did not do"
        yield weighing(6, "suspects-log", says, one.output)
    for rank, words in heard:
        no_error = "and its output holds no error that ended it"
        if words.ends:
            says = f"Rank {rank} said «{short(words.ends, 100)}», {no_error}"
            yield weighing(10, "suspects-log", says, words.output)
        elif words.line and not words.steps:
            says = f"Rank {rank} said «{short(words.line, 100)}» at its end, {no_error}"
            yield weighing(3, "suspects-log", says, words.output)
