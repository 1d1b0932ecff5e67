"""A rank stands still in code of its own, and everybody else waits for it.

The other ranks are inside a collective. This one never came to it: it is alive, and its main thread
stands at the same place in every look. What it does there (sleep, wait for a file, poll a service,
loop) is for its own code to answer; the line is in the report.

It is recognised by where the rank stands, by that it does not move on, and by that all others wait
in a collective. It steps back where something more telling is seen: a process that is stopped, an
import, a file lock, a loader worker, an interpreter lock that is held. It is ruled out when the
rank is stopped, is dead, or is inside a collective itself.

One that computes alone while the others have long waited, under no condition on the rank, and of
which nothing shows that it gets on, may go round for ever: both this and a long task are possible.
"""

from __future__ import annotations

from trainprobe.causes.awaited import (
    Awaited,
    at_exit,
    awaited,
    endless,
    last_in_own_code,
    values_says,
)
from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import goes_round
from trainprobe.causes.classes import WAITS_FOR_SOMEBODY, passed_the_rendezvous
from trainprobe.causes.collective_calls import away, of_stuck
from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.causes.concurrent_calls import second_calls
from trainprobe.causes.file_calls import elsewhere
from trainprobe.causes.lone_workers import may_go_round, waited
from trainprobe.causes.network.rendezvous_incomplete import absent
from trainprobe.causes.phrases import (
    Fixes,
    file_line,
    fix,
    fixes,
    mend_loop,
    native_stack,
    ranks_say,
    short,
    subject,
    verb,
)
from trainprobe.causes.remote_calls import tried_again
from trainprobe.causes.scene import (
    WAITS_FOR_RANKS,
    Scene,
    Weighings,
    first_found,
    waits_for_ranks,
    weighing,
)
from trainprobe.causes.user_objects import broken, weigh_broken
from trainprobe.facts import FlightDump, LoopValue, MainThread
from trainprobe.waits import Divergence
from trainprobe.waits.circling import Circle
from trainprobe.waits.data_timeouts import wait_expected
from trainprobe.waits.divergence import call_says
from trainprobe.waits.dump_hangs import last_recorded, only_dumps

# Leaves that another cause explains better when its own evidence is there.
SOMEBODY_ELSES = frozenset({"dataloader", "import-lock", "compile", "teardown"})


def _weigh(scene: Scene) -> Weighings:
    yield from _of_lone_worker(scene) if scene.group.mode == "slow" else _of_stuck(scene)


def _of_stuck(scene: Scene) -> Weighings:
    yield from of_stuck(scene, Timeouts(scene))
    if (calls := _never_made(scene)) is not None:
        points = 13 if all(_left_record(scene, rank) for rank in calls.camps[0]) else 6
        says = (
            f"{ranks_say(calls.camps[0])} never made collective {calls.position}, {calls.calls[1]},"
            f" in which {ranks_say(calls.camps[1], capital=False)} wait"
        )
        yield weighing(points, "other-stacks", says, ids=calls.evidence)
    if not wait_expected(scene.facts, scene.cell):
        yield from weigh_broken(broken(scene, "stood"), 13)
    for rank in _at_a_key(scene) or scene.ranks:
        process, thread = scene.process(rank), scene.thread(rank)
        if process is not None and process.state in ("T", "t"):
            says = f"Rank {rank} is stopped (state {process.state}), not stuck"
            yield weighing(-26, "process-state-and-locks", says, process)
        if (
            process is not None
            and process.state == "D"
            and not process.cpu_moved
            and elsewhere(process)
        ):
            says = (
                f"Rank {rank} sleeps in the kernel ({process.wchan or process.kernel_stack[0]},"
                " state D), which is no wait of its own code"
            )
            yield weighing(-26, "process-state-and-locks", says, process)
        ending = first_found(
            end
            for end in scene.endings([rank])
            if not (end.by_us or end.by_launcher) and end.how != "timed_out"
        )
        if ending is not None:
            says = f"Rank {rank} has ended ({ending.signal_name or f'exit code {ending.code}'})"
            yield weighing(-26, "exit-status", says, ending)
        if thread is not None:
            yield from _of_thread(scene, rank, thread)
    if (
        scene.live is not None
        and absent(scene)
        and not (scene.live.elsewhere or only_dumps(scene.live))
        and not any(at_exit(scene.thread(rank)) for rank in scene.ranks)
    ):
        says = (
            f"{ranks_say(absent(scene))} of the world has no process here, and it may wait for that"
        )
        yield weighing(-10, "other-stacks", says, scene.live)
    elif (
        (absent_ranks := absent(scene))
        and scene.ranks
        and all(at_exit(scene.thread(rank)) for rank in scene.ranks)
    ):
        says = (
            f"{ranks_say(absent_ranks)} {verb(absent_ranks, 'has', 'have')} come to the end already"
        )
        yield weighing(6, "other-stacks", says, scene.live)
    circling = [thread for thread in scene.threads(scene.world) if endless(scene, thread)]
    functions = {(thread.user_file, thread.user_function) for thread in circling}
    if len(circling) > len(functions) == 1 and set(scene.ranks) <= {
        thread.rank for thread in circling
    }:
        says = "They go round in a loop without an end of its own, and may wait for each other"
        yield weighing(-13, "suspects-stack", says, *circling)
    if passed_the_rendezvous(scene):
        says = (
            f"{ranks_say(scene.others)} still {verb(scene.others, 'waits', 'wait')} at the"
            " rendezvous that it has passed, so they may belong to another world"
        )
        yield weighing(-10, "other-stacks", says, *scene.threads(scene.others))
    mine = _at_a_key(scene) or scene.ranks
    others = tuple(rank for rank in scene.world if rank not in mine)
    waiting = [thread for thread in scene.threads(others) if _in_collective(scene, thread)]
    if waiting and len(waiting) == len(others):
        says = (
            f"{ranks_say(others)} {verb(others, 'waits', 'wait')} in a collective for"
            f" {ranks_say(mine, capital=False)}"
        )
        yield weighing(6, "other-stacks", says, *waiting)


def _of_lone_worker(scene: Scene) -> Weighings:
    """The verdict takes a rank that computes for one that gets on; it may be in an endless loop."""
    thread = may_go_round(scene)
    if thread is not None:
        says = (
            f"Rank {thread.rank} has worked alone for {waited(scene)[0]:.0f} s, under no condition"
            " on the rank, and nothing shows that it gets on"
        )
        yield weighing(6, "suspects-stack", says, thread)


def _in_collective(scene: Scene, thread: MainThread) -> bool:
    """Does this main thread wait for other ranks, or for a thread of its own that does?"""
    return waits_for_ranks(thread) or thread.rank in second_calls(scene)


def _never_made(scene: Scene) -> Divergence | None:
    """The call that the suspects did not make, where nobody saw what they did instead."""
    found = scene.group.divergence
    if found is None or found.kind != "missing" or set(found.camps[0]) != set(scene.ranks):
        return None
    if any(
        scene.thread(rank) or scene.process(rank) or scene.endings([rank])
        for rank in found.camps[0]
    ):
        return None
    return found


def _left_record(scene: Scene, rank: int) -> bool:
    """Its own recorder or journal reaches up to the end, so that the call was not only lost."""
    return bool(scene.calls(rank)) or scene.one(FlightDump, rank=rank) is not None


def _at_a_key(scene: Scene) -> tuple[int, ...]:
    """The suspect that waits for a key of the store while the others are in a collective, which
    they may leave when that one comes: as few ranks as can be named.
    """
    alone = [one.rank or 0 for one in scene.threads(scene.ranks) if _alone_at_a_key(scene, one)]
    return tuple(alone) if len(alone) == 1 else ()


def _alone_at_a_key(scene: Scene, thread: MainThread) -> bool:
    """Does it wait for a key of the store while no other rank is at the store? Those that wait in
    a collective do not set it.
    """
    others = (one for one in scene.threads(scene.world) if one.rank != thread.rank)
    return thread.op == "key" and all(one.op != "key" for one in others)


def _of_thread(scene: Scene, rank: int, thread: MainThread) -> Weighings:
    raised = first_found(scene.exceptions([rank])) if at_exit(thread) else None
    if raised is not None:
        says = f"Rank {rank} has left its program by an exception, {raised.type}"
        yield weighing(-26, "suspects-log", says, raised)
    elif thread.leaf in WAITS_FOR_RANKS and not _alone_at_a_key(scene, thread):
        says = f"Rank {rank} is inside {thread.op or 'a collective'} itself"
        yield weighing(-26, "suspects-stack", says, thread)
    elif thread.moved is False:
        # Not 13: a more special illness that no rule knows yet looks the same, as a third of the
        # programs that nobody had planned for did. A thread of its own that keeps it from ending
        # and a wait for a person are seen, and need no other cause; but where others still wait in
        # a collective, it has left too early, and would be missed without that thread as well.
        needed = at_exit(thread) and bool(scene.waiting(scene.others))
        seen = at_exit(thread) or thread.op in WAITS_FOR_SOMEBODY
        points = 3 if needed else 13 if seen else 10
        place = thread.where or "the same place"
        if at_exit(thread):
            last = last_in_own_code(scene, thread)
            place = f"its end, behind a thread at {last}," if last else "its end"
        says = f"Rank {rank} stands at {place} in all {thread.looks} looks"
        yield weighing(points, "suspects-stack", says, thread)
    elif thread.moved and (loop := goes_round(scene, rank)):
        circle = _circle(scene, thread)
        says = f"Rank {rank} goes round in {loop} in all {thread.looks} looks"
        if circle is not None:
            says = f"Rank {rank} goes round in {loop}: {circle.says}"
        yield weighing(13 if circle is not None else 10, "suspects-stack", says, thread)
    elif thread.moved and _in_vain(scene, thread) is not None:
        says = f"Rank {rank} moved on, but none of its values did: it may go round for ever"
        points = 10 if scene.watch.starts_anew(thread.pid) is not None else 3
        yield weighing(points, "suspects-stack", says, thread)
    elif thread.moved:
        yield weighing(-10, "suspects-stack", f"Rank {rank} moved on between the looks", thread)
    else:
        says = f"Rank {rank} stood at {thread.where or 'a place of its own'} in the only look"
        yield weighing(6, "suspects-stack", says, thread)
    if thread.leaf == "lock" and thread.op == "mp-lock":
        says = "It waits for a lock shared between processes, and nobody here is seen to hold it"
        yield weighing(-13, "suspects-stack", says, thread)
    if (
        (thread.leaf in SOMEBODY_ELSES and not at_exit(thread))
        or thread.importing
        or thread.lock_path
        or tried_again(scene, thread)
    ):
        why = (
            f"tries of {tried_again(scene, thread)}"
            if tried_again(scene, thread)
            else f"the import of {thread.importing}"
            if thread.importing
            else f"the lock {thread.lock_path}"
            if thread.lock_path
            else thread.leaf
        )
        yield weighing(
            -10, "suspects-stack", f"Where it stands has a cause of its own: {why}", thread
        )


def _circle(scene: Scene, thread: MainThread) -> Circle | None:
    return scene.watch.circle(thread.pid) if scene.live is not None else None


def _in_vain(scene: Scene, thread: MainThread) -> LoopValue | None:
    return scene.watch.in_vain(thread.pid) if scene.live is not None else None


def _summary(scene: Scene) -> str:
    if (given := broken(scene, "stood")) is not None:
        return given.says
    if (missing := Timeouts(scene).missing) is not None:
        return (
            f"{ranks_say(missing.ranks)} never came to the collective in which the others gave up"
        )
    if (calls := _never_made(scene)) is not None:
        last = last_recorded(scene.facts, scene.cell, scene.ranks[0])
        after = (
            f"; the last call recorded of {'it' if len(scene.ranks) == 1 else 'them'} is"
            f" {call_says(last)}"
            if last is not None
            else ""
        )
        return (
            f"{subject(scene)} did not join {calls.calls[1]}, in which"
            f" {ranks_say(calls.camps[1], capital=False)} wait{after}"
        )
    if alone := _at_a_key(scene):
        thread, wait = scene.thread(alone[0]), awaited(scene, alone[0])
        others = [rank for rank in scene.world if rank not in alone]
        return (
            f"{ranks_say(alone)} waits{f' at {thread.where}' if thread is not None else ''} for"
            f" {wait.says if wait is not None else 'a key of the store'};"
            f" {ranks_say(others, capital=False)} {verb(others, 'waits', 'wait')} for it in a"
            f" collective, and so {verb(others, 'does', 'do')} not set it"
        )
    threads = scene.threads(scene.ranks)
    where = f" at {threads[0].where}" if threads and threads[0].where else ""
    inside = tuple(
        thread.rank or 0 for thread in scene.threads(scene.others) if _in_collective(scene, thread)
    )
    rest = (
        f"; {ranks_say(inside, capital=False)} {verb(inside, 'waits', 'wait')} for it in a"
        " collective"
        if inside
        else ""
    )
    if threads and (circle := _circle(scene, threads[0])) is not None:
        return (
            f"{subject(scene)} {verb(scene.ranks, 'goes', 'go')} round in a loop{where}:"
            f" {circle.says}{rest}"
        )
    if threads and (value := _in_vain(scene, threads[0])) is not None:
        return (
            f"{subject(scene)} {verb(scene.ranks, 'goes', 'go')} round{where}, and in {value.reads}"
            f" reads of its values none moved on{values_says(scene, threads[0].pid)}{rest}"
        )
    ending = bool(threads) and all(at_exit(thread) for thread in threads)
    where = " at its end" if ending else where
    wait = first_found(
        found for rank in scene.ranks[:1] if (found := awaited(scene, rank)) is not None
    )
    what = f", waiting for {wait.says}" if wait is not None else ""
    loop = _sleeping_in(scene, threads[0]) if threads and wait is None else ""
    if loop:
        goes = verb(scene.ranks, "goes", "go")
        return f"{subject(scene)} {goes} round in {loop}, and sleeps{where} in each pass{rest}"
    return f"{subject(scene)} {verb(scene.ranks, 'stands', 'stand')} still{where}{what}{rest}"


def _sleeping_in(scene: Scene, thread: MainThread) -> str:
    """The `while` around a line at which it sleeps for a moment, again and again; "" elsewhere."""
    process = scene.process_of(thread.pid)
    naps = process is not None and (process.asleep_s or 0.0) < 1.0 and bool(process.switches)
    if thread.leaf != "sleep" or not naps:
        return ""
    loops = (
        (site, block)
        for site in scene.sites(reversed(thread.frames))
        for block in reversed(site.blocks)
        if block.kind in ("for", "while") and block.branch == "body"
    )
    site, loop = next(loops, (None, None))
    if site is None or loop is None or loop.kind != "while":
        return ""
    return f"`{short(loop.text.rstrip(':'), 60)}` at {file_line(site.file, loop.line)}"


def _fixes(scene: Scene) -> Fixes:
    if Timeouts(scene).missing is not None or _never_made(scene) is not None:
        return fixes("""
            See where that rank stands
                TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 in the environment
                trainprobe attach   (while it hangs, on that rank's node)
        """)
    if (given := broken(scene, "stood")) is not None:
        return (
            fix(
                "See what it waits for",
                f"{given.says}",
                "run the factory alone under py-spy: py-spy dump --pid <PID>",
            ),
        )
    threads = scene.threads(_at_a_key(scene) or scene.ranks)
    place = threads[0].where if threads and threads[0].where else "the line in the stack above"
    if threads and (_circle(scene, threads[0]) or _in_vain(scene, threads[0])):
        return mend_loop(place)
    if threads and (loop := _sleeping_in(scene, threads[0])):
        return mend_loop(loop)
    place = (last_in_own_code(scene, threads[0]) if threads else "") or place
    wait = next(
        (
            found
            for rank in (_at_a_key(scene) or scene.ranks)[:1]
            if (found := awaited(scene, rank)) is not None
        ),
        Awaited(""),
    )
    look = wait.look or native_stack(scene, ranks_say(scene.ranks[:1], capital=False))
    mend = wait.mend or (
        "bound it with a timeout that raises, so that the job fails loudly instead of hanging",
    )
    return (
        fix("See what that line waits for", f"open {place} and find what ends the wait", *look),
        fix("Give the wait an end", *mend),
    )


CAUSE = Cause(
    id="rank-stuck",
    title="A rank stands still in its own code",
    modes=("hang", "check", "slow"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=lambda scene: away(Timeouts(scene)) or _at_a_key(scene) or scene.ranks,
    would_settle="a native stack of that rank while it hangs: py-spy dump --native --pid <PID>",
)
