"""A process waits to put into, or to join, a queue or pipe that nobody empties any more.

A child that put into a `multiprocessing.Queue` does not end before somebody has emptied it, so a
parent that joins it first waits for ever. A bounded queue blocks its writer once its reader is
gone, and a reader waits for ever once the writer is.

It is recognised by `join` or `waitpid` on one side and, in the child, a feeder thread or a
finaliser that still writes; by a `put` that stands while no thread of the job takes from a queue;
by a full pipe. A reader that is seen at its `get` rules a full queue out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainprobe.causes.awaited import sleeps_at
from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import (
    busy_children,
    ends,
    goes_on,
    others_wait,
    states,
    threads_of,
    who,
)
from trainprobe.causes.died_of_exceptions import dead_helper, helper_says
from trainprobe.causes.phrases import Fixes, fix, fixes, ranks_say
from trainprobe.causes.scene import Scene, Weighings, user_frame, weighing
from trainprobe.facts import LogJob, MainThread, PipeEnd, ProcessState, Thread
from trainprobe.stacks.blocked_calls import BlockedCall
from trainprobe.stacks.classify import classify
from trainprobe.stacks.places import is_user
from trainprobe.waits.far_ends import FarEnd, far_ends


def _lives(scene: Scene, rank: int) -> bool:
    process = scene.process(rank)
    return process.state not in ("Z", "X") if process else scene.thread(rank) is not None


def _weigh(scene: Scene) -> Weighings:
    if (
        scene.live is not None
        and scene.ranks
        and not any(_lives(scene, one) for one in scene.ranks)
    ):
        return  # nobody waits for what the children do of a rank that is gone
    calls = at_queues(scene)
    feeding = [thread for thread, call in calls if call == "feed"]
    writers = writers_of(scene)
    joining = joining_of(scene)
    reading = reading_of(scene)
    piping = piping_of(scene)
    if joining and feeding:
        says = (
            f"{who(joining[0])} joins its child at {joining[0].where} in {joining[0].looks} looks"
        )
        yield weighing(13, "suspects-stack", says, *joining)
        child = feeding[0].pid
        says = (
            f"{f'Pid {child}' if child > 0 else 'The child'} cannot end: it still feeds its queue,"
            " which nobody empties"
        )
        yield weighing(13, "other-stacks", says, *feeding)
    elif writers:
        yield from _of_writers(scene, writers)
    elif reading:
        points = 13 if not busy_children(scene) else 6
        says = f"{who(reading[0])} stands in a queue's get at {reading[0].where}"
        yield weighing(points, "suspects-stack", says, *reading)
        if in_process(reading[0]):
            yield from _of_threads(scene, reading[0])
        elif (
            scene.one(LogJob) is None
            and not busy_children(scene)
            and not any(
                state.role != "rank" and state.state not in ("Z", "X") for state in states(scene)
            )
        ):
            yield weighing(
                10, "other-stacks", "No process below it lives that could put anything in", *reading
            )
    elif piping:
        verb = (
            "write to a full pipe" if "pipe_write" in piping[0].wchan else "read of an empty pipe"
        )
        says = (
            f"Pid {piping[0].pid} sleeps in the {verb} ({piping[0].wchan}) in {piping[0].looks}"
            " looks"
        )
        yield weighing(13, "process-state-and-locks", says, *piping)
        other = other_end(scene, piping[0].pid, "w" if "pipe_write" in piping[0].wchan else "r")
        if other:
            yield weighing(
                10, "other-stacks", f"The other end of its pipe is {other}", *ends(scene)
            )
    elif joined := joined_threads(scene):
        yield from _of_joined(*joined[0])
    else:
        return
    pids = {*(thread.pid for thread in writers), *(thread.pid for thread in feeding)}
    blocked = [
        state for state in states(scene) if state.pid in pids and "pipe_write" in state.wchan
    ]
    if blocked:
        says = f"Pid {blocked[0].pid} sleeps in the write to a full pipe"
        yield weighing(10, "process-state-and-locks", says, *blocked)
    if (helper := dead_helper(scene)) is not None:
        says = f"{helper_says(helper[0])} may have been at its other end, and died of an exception"
        yield weighing(-13, "suspects-log", says, *helper)
    yield from others_wait(scene)


def _of_writers(scene: Scene, writers: Sequence[MainThread]) -> Weighings:
    taking = _taking(scene)
    points = 13 if writers[0].moved is False else 6
    says = f"{who(writers[0])} stands in a queue's {queue_call(writers[0])} at {writers[0].where}"
    yield weighing(points, "suspects-stack", says, *writers)
    if not taking and at_queues(scene):
        says = "No thread of that rank or of its children takes from a queue"
        yield weighing(10, "other-stacks", says, *writers)
    elif (taker := _idle_taker(scene, writers[0])) is not None:
        says = (
            f"{_thread(taker)} has taken all and waits for more: something that it took was not"
            " marked by task_done()"
        )
        yield weighing(13, "other-stacks", says, taker)
    elif taking:
        says = (
            f"{f'Pid {taking[0].pid}' if taking[0].pid > 0 else 'A process'} is at a queue's"
            " get, so somebody reads"
        )
        yield weighing(-10, "other-stacks", says, *taking)


def _taking(scene: Scene) -> list[Thread]:
    return [thread for thread, call in at_queues(scene) if call == "get"]


def _idle_taker(scene: Scene, writer: MainThread) -> Thread | None:
    """The thread of its own process that waits for more of a queue whose `join` it waits in."""
    if queue_call(writer) != "join" or not in_process(writer):
        return None
    return next((one for one in _taking(scene) if one.pid == writer.pid and in_process(one)), None)


def _of_joined(main: MainThread, thread: Thread) -> Weighings:
    what = "a result of" if main.op == "future" else "the end of"
    says = f"{who(main)} waits at {main.where} for {what} {_thread(thread)}"
    yield weighing(13, "suspects-stack", says, main)
    says = f"That thread stands in a queue's {queue_call(thread)}, and no other is at its end"
    yield weighing(10, "other-stacks", says, thread)


def joined_threads(scene: Scene) -> tuple[tuple[MainThread, Thread], ...]:
    """Main threads that wait for the end of a thread of their own, or for a result out of one, and
    that thread, which stands at a queue at whose other end no thread of the process is.
    """
    found = []
    for main in scene.threads(scene.suspects):
        ends = _ENDS if _calls(main, "threading.py", "join") else {}
        if main.op == "future":  # the idle threads of a pool stand in the get of theirs
            ends = {"put": "get"}
        if main.moved is True or not ends:
            continue
        calls = [(one, queue_call(one)) for one in threads_of(scene, main.pid) if not one.main]
        there = {call for _, call in calls}
        found += [
            (main, one)
            for one, call in calls
            if call in ends and ends[call] not in there and (main.op != "future" or in_process(one))
        ]
    return tuple(found)


_ENDS = {"put": "get", "join": "get", "get": "put"}


def _calls(thread: MainThread, base: str, name: str) -> bool:
    return any(frame.base == base and frame.function == name for frame in thread.frames[-3:])


def in_process(thread: MainThread | Thread) -> bool:
    """Does it stand at a `queue.Queue`, which only threads of its own process can fill or empty?"""
    frames = [frame for frame in thread.frames[-6:] if any(path in frame.file for path in QUEUES)]
    return bool(frames) and all(
        frame.base == "queue.py" and "multiprocess" not in frame.file for frame in frames
    )


def feeders(scene: Scene, pid: int) -> tuple[Thread, ...]:
    """Threads beside the main one that run code of the job, and so may fill its queue."""
    return tuple(
        thread
        for thread in threads_of(scene, pid)
        if not thread.main and any(is_user(frame) for frame in thread.frames)
    )


def _of_threads(scene: Scene, reader: MainThread) -> Weighings:
    """A queue of one process: no other process can fill it, whatever children there are."""
    others = feeders(scene, reader.pid)
    if reader.pid <= 0 and len(threads_of(scene, reader.pid)) <= 1:
        return  # a dump without its process: the other threads may have been left out
    if not others:
        says = (
            f"No other thread of pid {reader.pid} runs code of the job: whoever filled it is gone"
        )
        yield weighing(10, "other-stacks", says, reader)
        return
    says = f"{_thread(others[0])} lives beside it, and may be the one that should fill it"
    yield weighing(3, "other-stacks", says, *others)


def _thread(thread: Thread) -> str:
    frame = user_frame(thread.frames)
    name = f"thread {thread.name}" if thread.name else "a thread"
    place = classify(thread.frames)
    doing = f", in {place.op}" if place.op and place.user is not None else ""
    return f"{name} at {frame.where}{doing}" if frame is not None else name


def _pids(scene: Scene) -> tuple[int, ...]:
    feeding = [thread.pid for thread, call in at_queues(scene) if call == "feed"]
    threads = (*joining_of(scene), *writers_of(scene), *reading_of(scene))
    return tuple(
        dict.fromkeys(
            [
                *(thread.pid for thread in threads),
                *(state.pid for state in piping_of(scene)),
                *feeding,
            ]
        )
    )


def _summary(scene: Scene) -> str:
    feeding = [thread.pid for thread, call in at_queues(scene) if call == "feed"]
    if joining_of(scene) and feeding:
        return (
            f"{who(joining_of(scene)[0])} joins"
            f" {f'pid {feeding[0]}' if feeding[0] > 0 else 'a child'}, which waits for somebody to"
            " empty the queue that it filled"
        )
    if writers_of(scene):
        writer = writers_of(scene)[0]
        if _idle_taker(scene, writer) is not None:
            return (
                f"{who(writer)} waits at {writer.where} until all that was put into a queue is"
                " marked as done; all has been taken, and something was never marked (task_done)"
            )
        does = "for the end of" if queue_call(writer) == "join" else "to put into"
        return f"{who(writer)} waits at {writer.where} {does} a queue that nobody empties"
    if not (reading_of(scene) or piping_of(scene)) and (joined := joined_threads(scene)):
        main, thread = joined[0]
        does = "fills" if queue_call(thread) == "get" else "empties"
        what = "a result of" if main.op == "future" else "the end of"
        return (
            f"{who(main)} waits at {main.where} for {what} {_thread(thread)}, which stands at a"
            f" queue that nobody {does}"
        )
    if not reading_of(scene):
        first = piping_of(scene)[0]
        at = next(
            (
                f" at {thread.where}"
                for thread in ends(scene)
                if thread.pid == first.pid and thread.where
            ),
            "",
        )
        word, mode = ("write to", "w") if "pipe_write" in first.wchan else ("read from", "r")
        child = first.role != "rank"
        several = not child and len(scene.ranks) > 1
        waiter = (
            f"Pid {first.pid}, a child of {ranks_say(scene.ranks, capital=False)},"
            if child
            else f"{ranks_say(scene.ranks)} (pid {first.pid}{' and others' if several else ''})"
        )
        return (
            f"{waiter} {'wait' if several else 'waits'}{at} to {word} a pipe; its other end is"
            f" {other_end(scene, first.pid, mode) or 'not seen'}"
        )
    reader = reading_of(scene)[0]
    whom = "that nobody fills"
    if in_process(reader):
        others = feeders(scene, reader.pid)
        whom = "of its own process, which no thread feeds any more"
        if others:
            there = sleeps_at(scene, others[0]).replace(", which", "; it", 1)
            whom = f"of its own process, which {_thread(others[0])} does not fill{there}"
    return f"{who(reader)} waits at {reader.where} for a queue {whom}"


READ_FIRST = """
Read what the child writes before waiting for its end
    at {where}: out, err = process.communicate() in place of wait() or poll(); or give it a file or
        subprocess.DEVNULL in place of the pipe
"""
PIPE = """
Serve both ends at once
    process.communicate(timeout=600) writes, reads and waits; a bare write() or read() serves one
        pipe only
Or let nobody wait for a reader
    a server that lives on: Popen(..., stdout=open("server.log", "w"), stderr=subprocess.STDOUT)
"""
UNFED = """
See why the thread that fills the queue ended
    look in the log for its last exception: "Exception in thread …"; where there is none, for an
        `except` in what the thread runs that ends it without a word
Let its end reach whoever waits
    in the thread: except BaseException as error: queue.put(error); the reader raises what it gets
    while waiting: if not thread.is_alive(): raise RuntimeError("the producer is gone")
"""
UNEMPTIED = """
See why no thread takes from the queue any more
    look in the log for the last exception of the one that did: "Exception in thread …"
Let its end reach whoever fills it
    in that thread: task_done() in a finally; what it raised is kept, and thread.is_alive() asked
        before each put
    queue.put(item, timeout=60)   (raises queue.Full, so that the job fails loudly)
"""
UNMARKED = """
Mark each thing that was taken, whatever becomes of it
    open {place}: item = queue.get(); try: ... finally: queue.task_done()
    a `continue`, `return` or exception between get() and task_done() leaves it out
"""
UNSERVED = """
See what the thread that should fill the queue waits for
    open {place}
Let waits end
    queue.put(item, timeout=60); queue.get(timeout=60)
"""
OWN_PIPE = """
See what the thread at the other end does
    open {place}: it should serve the pipe in a loop that nothing but the end of the data ends
Let its end reach whoever waits
    in the thread: close its end in a finally; who writes gets BrokenPipeError, who reads the end
"""
QUEUE = """
Empty the queue before the join
    results = [queue.get() for _ in range(n)]
    process.join()   (only then)
Let waits end
    queue.put(item, timeout=60); queue.get(timeout=60)
    queue.cancel_join_thread()   (where the rest may be lost)
"""


JOINED = """
Let the thread end before its join
    queue.put(item, timeout=1) and queue.get(timeout=1) in the thread, in a loop that ends when an
        Event is set; set it, and empty the queue, before thread.join()
"""


ASKED = """
Let the thread not wait for the one that waits for it
    queue.put_nowait(item), or put(item, timeout=1) in a loop, in the thread that makes the result
    or empty the queue before the call that waits for the result
Let waits end
    future.result(timeout=600)
"""


def _fixes_of_a_writer(scene: Scene, writer: MainThread) -> Fixes:
    if (taker := _idle_taker(scene, writer)) is not None:
        frame = user_frame(taker.frames)
        return fixes(UNMARKED, place=frame.where if frame is not None else "that thread")
    left = "See both ends" if feeders(scene, writer.pid) else "See which threads are left"
    ends = (look_at(scene, pid) for pid in _pids(scene)[:3])
    return (fix(left, *ends), *fixes(UNEMPTIED))


def _fixes(scene: Scene) -> Fixes:
    piping = piping_of(scene)
    at_an_end = writers_of(scene) or reading_of(scene) or piping
    if not at_an_end and (joined := joined_threads(scene)):
        main = joined[0][0]
        mend = ASKED if main.op == "future" else JOINED
        return (fix("See both ends", look_at(scene, main.pid)), *fixes(mend))
    if not piping or writers_of(scene) or reading_of(scene):
        ends = (look_at(scene, pid) for pid in _pids(scene)[:3])
        writer = next(iter(writers_of(scene)), None)
        if writer is not None and in_process(writer):
            return _fixes_of_a_writer(scene, writer)
        reader = None if writer is not None else next(iter(reading_of(scene)), None)
        if reader is not None and in_process(reader):
            feeding = feeders(scene, reader.pid)
            frame = user_frame(feeding[0].frames) if feeding else None
            if frame is None:
                return (fix("See which threads are left", *ends), *fixes(UNFED))
            return (fix("See both ends", *ends), *fixes(UNSERVED, place=frame.where))
        return (fix("See both ends", *ends), *fixes(QUEUE))
    pid, mode = piping[0].pid, "w" if "pipe_write" in piping[0].wchan else "r"
    other = other_pid(scene, pid, mode)
    pipes = f"ls -l /proc/{pid}/fd | grep pipe"
    far_end = look_at(scene, other) if other else ""
    see = fix("See both ends", pipes, look_at(scene, pid), far_end)
    if _is_own(scene, pid, mode):
        serving = next(iter(feeders(scene, pid)), None)
        frame = user_frame(serving.frames) if serving is not None else None
        if frame is None:
            return (fix("See which threads are left", look_at(scene, pid)), *fixes(UNFED))
        return (fix("See both ends", look_at(scene, pid)), *fixes(OWN_PIPE, place=frame.where))
    there = next(iter(scene.of_process(MainThread, other)), None) if other else None
    if mode == "w" and there is not None and there.leaf == "child-wait" and there.where:
        return (*fixes(READ_FIRST, where=there.where), see, *fixes(PIPE)[1:])
    return (see, *fixes(PIPE))


# Who stands at which end of a queue: `put`, `get`, `join`, or the thread that feeds the queue's
# pipe.
QUEUES = (
    "multiprocessing/queues.py",
    "/queue.py",
    "multiprocess/queues.py",
    "multiprocessing/connection.py",
)
ASKS = frozenset({"terminal", "debugger"})  # a person's answer, also where it comes by a pipe
FEEDS = frozenset({"_feed", "_finalize_join"})


def queue_call(thread: MainThread | Thread) -> str:
    """`put`, `get`, `join` or `feed` of a thread at a queue, except the loader's; else empty."""
    if any("torch/utils/data/" in frame.file for frame in thread.frames) or (
        any(path in frame.file for frame in thread.frames[-6:] for path in QUEUES)
        and classify(thread.frames).leaf == "dataloader"
    ):
        return ""
    for frame in reversed(thread.frames[-6:]):
        name = frame.function
        # the method of a manager's proxy
        proxied = frame.file == "<string>" and any(
            "multiprocessing/managers.py" in one.file for one in thread.frames
        )
        if (proxied or any(path in frame.file for path in QUEUES)) and (
            name in ("put", "get", "join") or name in FEEDS
        ):
            return "feed" if name in FEEDS else name
        if name == "_finalize_join" or (
            name == "_exit_function" and "multiprocessing/util.py" in frame.file
        ):
            return "feed"
    return ""


def at_queues(scene: Scene) -> tuple[tuple[Thread, str], ...]:
    """Threads of the suspects and of processes below them that last stood at a queue."""
    last: dict[tuple[int, int | None], Thread] = {}
    for rank in scene.suspects:
        for thread in scene.of(Thread, rank=rank):
            if not thread.native:
                last[thread.pid, thread.os_thread_id] = thread
    return tuple((thread, call) for thread in last.values() if (call := queue_call(thread)))


def piping_of(scene: Scene) -> tuple[ProcessState, ...]:
    """Processes that the suspects wait for and that sleep at a full or empty pipe."""
    pids = {thread.pid for thread in ends(scene) if thread.op not in ASKS} - {
        thread.pid for thread in scene.workers(scene.suspects)
    }
    pids |= {state.pid for state in (*_awaited_programs(scene), *_answering(scene))}
    return tuple(
        state
        for state in states(scene)
        if state.pid in pids
        and ("pipe_write" in state.wchan or "pipe_read" in state.wchan)
        and not goes_on(state)
        and not ("pipe_read" in state.wchan and _child_waits(scene, state))
    )


def _child_waits(scene: Scene, state: ProcessState) -> bool:
    """Is the other end a child that waits for something else, as curl does for a server? Then it is
    a wait for that child.
    """
    ids = {f"pid {child.pid}" for child in scene.watch.children(state.pid)}
    rank = f"rank {state.rank}"
    return any(
        link.waiter.partition(" (")[0] in ids and not link.awaited.startswith(rank)
        for link in scene.group.chain
    )


def _answering(scene: Scene) -> tuple[ProcessState, ...]:
    """Children from which ranks wait for an answer, at a full pipe that a suspect should empty."""
    awaited = {link.awaited.partition(" (")[0] for link in scene.group.chain}
    mine = {thread.pid for thread in scene.threads(scene.suspects)}
    return tuple(
        state
        for state in states(scene)
        if f"pid {state.pid}" in awaited
        and "pipe_write" in state.wchan
        and other_pid(scene, state.pid, "w") in mine
    )


def _awaited_programs(scene: Scene) -> tuple[ProcessState, ...]:
    """Children without Python at a pipe whose other end only the waiting rank has."""
    waiting = {
        thread.pid
        for thread in scene.threads(scene.suspects)
        if thread.leaf == "child-wait" and thread.moved is not True
    }
    found = []
    for state in states(scene):
        mode = "w" if "pipe_write" in state.wchan else "r"
        ends_of = [end for end in scene.of(PipeEnd) if end.pid == state.pid and mode in end.mode]
        if (
            state.role == "child"
            and state.ppid in waiting
            and ends_of
            and all(set(end.other_pids) == {state.ppid} for end in ends_of)
        ):
            found.append(state)
    return tuple(found)


def other_end(scene: Scene, pid: int, mode: str) -> str:
    """Who has the other end of the pipe in which `pid` sleeps, and what it does."""
    other, thread = _other(scene, pid, mode)
    if thread is not None:
        return f"pid {thread.pid}, which stands at {thread.where or thread.leaf}"
    if other:
        return f"pid {other}"
    if _is_own(scene, pid, mode):
        served = next(iter(feeders(scene, pid)), None)
        if served is None:
            return "its own process, of which no other thread runs code of the job"
        there = sleeps_at(scene, served)
        return f"its own process, where {_thread(served)} should serve it{there}"
    return "nobody that is seen" if _ends_of(scene, pid, mode) else ""


def other_pid(scene: Scene, pid: int, mode: str) -> int:
    """The process at the other end of the pipe, one with a Python stack first; 0 if unknown."""
    return _other(scene, pid, mode)[0]


def _other(scene: Scene, pid: int, mode: str) -> tuple[int, MainThread | None]:
    others = [other for end in _ends_of(scene, pid, mode) for other in end.pids]
    thread = next((thread for thread in scene.of(MainThread) if thread.pid in others), None)
    return (thread.pid, thread) if thread is not None else (next(iter(others), 0), None)


def _is_own(scene: Scene, pid: int, mode: str) -> bool:
    """Is the pipe one between threads of that process?"""
    ends = _ends_of(scene, pid, mode)
    return bool(ends) and all(end.own and not end.pids for end in ends)


def _ends_of(scene: Scene, pid: int, mode: str) -> tuple[FarEnd, ...]:
    """The far ends of the pipe at which it sleeps, of each one that it may be if no call tells."""
    process = scene.process_of(pid)
    if process is None:
        return ()
    ends = far_ends(scene.facts, scene.cell, process)
    if not any(end.kind in ("pipe", "fifo") for end in ends):
        of_mode = [end for end in scene.of(PipeEnd) if end.pid == pid and mode in end.mode]
        numbers = tuple(end.fd for end in of_mode if end.fd is not None)
        call = BlockedCall("", numbers, ()) if mode == "r" else BlockedCall("", (), numbers)
        ends = far_ends(scene.facts, scene.cell, replace(process, call=call))
    return tuple(end for end in ends if end.kind in ("pipe", "fifo"))


def look_at(scene: Scene, pid: int) -> str:
    """The command that shows what a process does: its Python stack, else the kernel's view."""
    if pid <= 0:
        return "trainprobe attach   (while it hangs the next time)"
    python = any(thread.pid == pid for thread in scene.of(MainThread))
    if python:
        return f"py-spy dump --pid {pid}"
    return f"ps -o pid,ppid,stat,etime,wchan:32,args -p {pid}"


def writers_of(scene: Scene) -> tuple[MainThread, ...]:
    """Main threads, of a rank or a child, that stand in `put` or in the end of a queue."""
    threads = (*scene.threads(scene.suspects), *busy_children(scene))
    return tuple(
        thread
        for thread in threads
        if queue_call(thread) in ("put", "feed", "join") and thread.moved is not True
    )


def joining_of(scene: Scene) -> tuple[MainThread, ...]:
    """Ranks that wait for the end of a child."""
    joins = ("join", "wait", "waitpid", "pool", "spawn")
    return tuple(
        thread
        for thread in scene.threads(scene.suspects)
        if thread.leaf == "child-wait" and thread.op in joins and thread.moved is not True
    )


def reading_of(scene: Scene) -> tuple[MainThread, ...]:
    """Ranks that stand in `get`."""
    return tuple(
        thread
        for thread in scene.threads(scene.suspects)
        if queue_call(thread) == "get" and thread.moved is not True
    )


CAUSE = Cause(
    id="queue-deadlock",
    title="A queue or pipe has nobody at its other end",
    modes=("hang",),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    pids=_pids,
    would_settle="py-spy dump of the process and of its children: who reads what the other writes?",
    refines="rank-stuck",
    accounts_for=("data-worker-stuck",),
)
