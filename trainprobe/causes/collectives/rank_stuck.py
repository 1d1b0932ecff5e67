"""A rank stands still in code of its own, and everybody else waits for it.

The other ranks are inside a collective. This one never came to it: it is alive, and its main thread stands at the same
place in every look. What it does there (sleep, wait for a file, poll a service, loop) is for its own code to answer;
the line is in the report.

It is recognised by where the rank stands, by that it does not move on, and by that all others wait in a collective.
It steps back where something more telling is seen: a process that is stopped, an import, a file lock, a loader worker,
an interpreter lock that is held. It is ruled out when the rank is stopped, is dead, or is inside a collective itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import WAITS_FOR_RANKS, Scene, weighing
from trainprobe.causes.words import again, fix, native_stack, ranks_say, sentence, subject, verb
from trainprobe.facts import Facts, MainThread
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user
from trainprobe.waits import SuspectGroup

# Leaves that another cause explains better when its own evidence is there.
SOMEBODY_ELSES = frozenset({"dataloader", "import-lock", "compile", "teardown"})


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    for rank in group.ranks:
        process, thread = scene.process(rank), scene.thread(rank)
        if process is not None and process.state in ("T", "t"):
            yield weighing(-26, "process-state-and-locks", f"Rank {rank} is stopped (state {process.state}), not stuck", process)
        ending = next((end for end in scene.endings([rank]) if not (end.by_us or end.by_launcher) and end.how != "timed_out"), None)
        if ending is not None:
            yield weighing(-26, "exit-status", f"Rank {rank} has ended ({ending.signal_name or f'exit code {ending.code}'})", ending)
        if thread is not None:
            yield from _of_thread(scene, rank, thread)
    waiting = [thread for thread in scene.threads(scene.others) if thread.leaf in WAITS_FOR_RANKS or thread.in_backward]
    if waiting and len(waiting) == len(scene.others):
        who = ranks_say(scene.others)
        yield weighing(10, "other-stacks", f"{who} {verb(scene.others, 'waits', 'wait')} in a collective for {ranks_say(group.ranks, capital=False)}", *waiting)


def _of_thread(scene: Scene, rank: int, thread: MainThread) -> Iterator[Weighing]:
    if thread.leaf in WAITS_FOR_RANKS:
        yield weighing(-26, "suspects-stack", f"Rank {rank} is inside {thread.op or 'a collective'} itself", thread)
    elif thread.moved is False:
        yield weighing(13, "suspects-stack", f"Rank {rank} stands at {thread.where or 'the same place'} in all {thread.looks} looks", thread)
    elif thread.moved and (loop := _goes_round(scene, rank)):
        yield weighing(10, "suspects-stack", f"Rank {rank} goes round in {loop} in all {thread.looks} looks", thread)
    elif thread.moved:
        yield weighing(-10, "suspects-stack", f"Rank {rank} moved on between the looks", thread)
    else:
        yield weighing(6, "suspects-stack", f"Rank {rank} stood at {thread.where or 'a place of its own'} in the only look", thread)
    if thread.leaf in SOMEBODY_ELSES or thread.importing or thread.lock_path:
        why = f"the import of {thread.importing}" if thread.importing else f"the lock {thread.lock_path}" if thread.lock_path else thread.leaf
        yield weighing(-10, "suspects-stack", f"Where it stands has a cause of its own: {why}", thread)


def _goes_round(scene: Scene, rank: int) -> str:
    """The user's function that a rank does not leave: the same callers at the same lines in all looks, and at most two lines of its own.

    A loop that polls (`while not ready(path): time.sleep(1)`) shows another helper or line in each look and still gets nowhere.
    """
    looks = [look.frames for look in scene.looks(rank) if look.frames]
    if len(looks) < 2:
        return ""
    depth = 0
    while all(len(frames) > depth for frames in looks) and len({_place(frames[depth]) for frames in looks}) == 1:
        depth += 1
    here = [frames[depth] for frames in looks if len(frames) > depth]
    same_function = len(here) == len(looks) and len({(frame.file, frame.name) for frame in here}) == 1
    around = here if same_function else [frames[depth - 1] for frames in looks if depth]
    own = bool(around) and is_user(around[0]) and around[0].name != "<module>" and len({frame.line for frame in around}) <= 2
    return around[0].name if own else ""


def _place(frame: Frame) -> tuple[str, str, int]:
    return (frame.file, frame.name, frame.line)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    threads = scene.threads(group.ranks)
    where = f" at {threads[0].where}" if threads and threads[0].where else ""
    rest = f"; {ranks_say(scene.others, capital=False)} {verb(scene.others, 'waits', 'wait')} for it in a collective" if scene.others else ""
    return sentence(f"{subject(scene)} {verb(group.ranks, 'stands', 'stand')} still{where}{rest}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    threads = scene.threads(group.ranks)
    place = threads[0].where if threads and threads[0].where else "the line in the stack above"
    return (
        fix(
            scene,
            "See what that line waits for",
            f"open {place} and find what ends the wait",
            *native_stack(scene, ranks_say(group.ranks[:1], capital=False)),
        ),
        fix(scene, "Give the wait an end", "bound it with a timeout that raises, so that the job fails loudly instead of hanging", verify=again(scene)),
    )


CAUSE = Cause(
    id="rank-stuck",
    title="A rank stands still in its own code",
    means="A rank is alive and still, in its own code, and no other cause says why.",
    telling="The end of all waits is this rank; its stack does not move, and every other rank is inside a collective.",
    modes=("hang", "slow"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="a native stack of that rank while it hangs: py-spy dump --native --pid PID",
)
