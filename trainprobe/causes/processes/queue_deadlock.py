"""A process waits to put into, or to join, a queue or pipe that nobody empties any more.

A child that put into a `multiprocessing.Queue` does not end before somebody has emptied it, so a parent that joins it first waits for ever.
A bounded queue blocks its writer once its reader is gone, and a reader waits for ever once the writer is.

It is recognised by `join` or `waitpid` on one side and, in the child, a feeder thread or a finaliser that still writes; by a `put` that stands
while no thread of the job takes from a queue; by a full pipe. A reader that is seen at its `get` rules a full queue out.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.at_queues import at_queues, joining_of, look_at, other_end, other_pid, piping_of, queue_call, reading_of, writers_of
from trainprobe.causes.cause import Cause
from trainprobe.causes.ends import busy_children, ends, others_wait, states, who
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.words import fix, ranks_say, sentence
from trainprobe.facts import Facts, LogJob
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    calls = at_queues(scene)
    feeding = [thread for thread, call in calls if call == "feed"]
    taking = [thread for thread, call in calls if call == "get"]
    writers, joining, reading, piping = writers_of(scene), joining_of(scene), reading_of(scene), piping_of(scene)
    if joining and feeding:
        yield weighing(13, "suspects-stack", f"{who(joining[0])} joins its child at {joining[0].where} in {joining[0].looks} looks", *joining)
        child = feeding[0].pid
        yield weighing(
            13, "other-stacks", f"{f'Pid {child}' if child > 0 else 'The child'} cannot end: it still feeds its queue, which nobody empties", *feeding
        )
    elif writers:
        points = 13 if writers[0].moved is False else 6
        yield weighing(points, "suspects-stack", f"{who(writers[0])} stands in a queue's {queue_call(writers[0])} at {writers[0].where}", *writers)
        if not taking and len(calls) > 0:
            yield weighing(10, "other-stacks", "No thread of that rank or of its children takes from a queue", *writers)
        elif taking:
            yield weighing(
                -10, "other-stacks", f"{f'Pid {taking[0].pid}' if taking[0].pid > 0 else 'A process'} is at a queue's get, so somebody reads", *taking
            )
    elif reading:
        points = 13 if not busy_children(scene) else 6
        yield weighing(points, "suspects-stack", f"{who(reading[0])} stands in a queue's get at {reading[0].where}", *reading)
        if (
            scene.facts.one(LogJob, cell=scene.cell) is None
            and not busy_children(scene)
            and not any(state.role != "rank" and state.state not in ("Z", "X") for state in states(scene))
        ):
            yield weighing(10, "other-stacks", "No process below it lives that could put anything in", *reading)
    elif piping:
        verb = "write to a full pipe" if "pipe_write" in piping[0].wchan else "read of an empty pipe"
        yield weighing(13, "process-state-and-locks", f"Pid {piping[0].pid} sleeps in the {verb} ({piping[0].wchan}) in {piping[0].looks} looks", *piping)
        other = other_end(scene, piping[0].pid, "w" if "pipe_write" in piping[0].wchan else "r")
        if other:
            yield weighing(10, "other-stacks", f"The other end of its pipe is {other}", *ends(scene))
    else:
        return
    pids = {*(thread.pid for thread in writers), *(thread.pid for thread in feeding)}
    blocked = [state for state in states(scene) if state.pid in pids and "pipe_write" in state.wchan]
    if blocked:
        yield weighing(10, "process-state-and-locks", f"Pid {blocked[0].pid} sleeps in the write to a full pipe", *blocked)
    yield from others_wait(scene)


def _pids(facts: Facts, group: SuspectGroup) -> tuple[int, ...]:
    scene = Scene(facts, group)
    feeding = [thread.pid for thread, call in at_queues(scene) if call == "feed"]
    threads = (*joining_of(scene), *writers_of(scene), *reading_of(scene))
    return tuple(dict.fromkeys([*(thread.pid for thread in threads), *(state.pid for state in piping_of(scene)), *feeding]))


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    feeding = [thread.pid for thread, call in at_queues(scene) if call == "feed"]
    if joining_of(scene) and feeding:
        return sentence(
            f"{who(joining_of(scene)[0])} joins {f'pid {feeding[0]}' if feeding[0] > 0 else 'a child'}, which waits for somebody to empty the queue that it filled"
        )
    if writers_of(scene):
        return sentence(f"{who(writers_of(scene)[0])} waits at {writers_of(scene)[0].where} to put into a queue that nobody empties")
    if not reading_of(scene):
        first = piping_of(scene)[0]
        at = next((f" at {thread.where}" for thread in ends(scene) if thread.pid == first.pid and thread.where), "")
        word, mode = ("write to", "w") if "pipe_write" in first.wchan else ("read from", "r")
        child = first.role != "rank"
        waiter = f"Pid {first.pid}, a child of {ranks_say(group.ranks, capital=False)}," if child else f"{ranks_say(group.ranks)} (pid {first.pid})"
        return sentence(f"{waiter} waits{at} to {word} a pipe; its other end is {other_end(scene, first.pid, mode) or 'not seen'}")
    return sentence(f"{who(reading_of(scene)[0])} waits at {reading_of(scene)[0].where} for a queue that nobody fills")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    piping = piping_of(scene)
    if piping and not (writers_of(scene) or reading_of(scene)):
        pid, mode = piping[0].pid, "w" if "pipe_write" in piping[0].wchan else "r"
        other = other_pid(scene, pid, mode)
        look = (f"ls -l /proc/{pid}/fd | grep pipe", look_at(scene, pid), look_at(scene, other) if other else "")
        return (
            fix(scene, "See both ends", *look),
            fix(scene, "Serve both ends at once", "process.communicate(timeout=600) writes, reads and waits; a bare write() or read() serves one pipe only"),
        )
    return (
        fix(scene, "See both ends", *(look_at(scene, pid) for pid in _pids(facts, group)[:3])),
        fix(scene, "Empty the queue before the join", "results = [queue.get() for _ in range(n)]; then process.join()"),
        fix(scene, "Let waits end", "queue.put(item, timeout=60), queue.get(timeout=60); queue.cancel_join_thread() where the rest may be lost"),
    )


CAUSE = Cause(
    id="queue-deadlock",
    title="A queue or pipe has nobody at its other end",
    means="A process waits to put into, or to join, a queue or pipe that nobody empties any more.",
    telling="Queue.put, a feeder thread or a join on one side, a full pipe and no reader on the other.",
    modes=("hang",),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    pids=_pids,
    would_settle="py-spy dump of the process and of its children: who reads what the other writes?",
    refines="rank-stuck",
    accounts_for=("data-worker-stuck",),
)
