"""A rank was ended from outside, by a signal that is not the out-of-memory killer's.

A scheduler's limit, a health daemon, a container's shutdown, or a person with `kill`. The rank
leaves no traceback: SIGKILL gives it no time, SIGTERM ends it where it stands. The other ranks
break later, or wait for it.

It is recognised by the exit by SIGKILL, SIGTERM, SIGINT, SIGHUP or a limit's signal that neither
trainprobe nor the launcher sent, before any other rank failed, while the count of out-of-memory
kills did not rise. A rise of that count rules it out.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.last_printed import last_printed
from trainprobe.causes.network.rendezvous_incomplete import absent, past_rendezvous
from trainprobe.causes.phrases import Fixes, admin_fix, fix, ranks_say, short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import quote
from trainprobe.causes.user_objects import broken, killed_by, weigh_broken
from trainprobe.causes.vanished_ranks import (
    all_at_exit,
    ends_all_on_failure,
    others_go_on,
    outlived_by,
)
from trainprobe.facts import RankEnding
from trainprobe.facts.printed_endings import PRINTED

# Signals that nobody's own code raises by mistake: an outsider's, a terminal's, or a limit's (CPU
# time, file size).
OUTSIDE = (
    "SIGKILL",
    "SIGTERM",
    "SIGINT",
    "SIGHUP",
    "SIGQUIT",
    "SIGUSR1",
    "SIGUSR2",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGALRM",
)


def _killed(scene: Scene) -> tuple[RankEnding, ...]:
    # A rank that had already broken for want of a peer, and was ended by the launcher after that,
    # was not killed from outside.
    own = [
        end
        for end in scene.endings(scene.suspects)
        if not (end.by_us or end.by_launcher or end.echo)
    ]
    return tuple(
        end
        for end in own
        if end.how in ("signalled", "oom_killed")
        and (end.signal_name in OUTSIDE or (end.signal is None and end.seen_by == PRINTED))
    )


def _gone(scene: Scene) -> Weighings:
    """A live job's rank without a process that nobody else would have ended."""
    job, gone = scene.live, absent(scene)
    if (
        job is None
        or not gone
        or job.elsewhere
        or scene.endings(gone)
        or all_at_exit(scene)
        or not past_rendezvous(scene)
        or ends_all_on_failure(scene)
    ):
        return
    line = next(iter(scene.oom_kills), None)
    who = f"{ranks_say(gone)} of {job.world_size or len(scene.world)}"
    ended = [words for rank in gone if (words := last_printed(scene, rank)) and words.ends]
    broke = [*scene.exceptions(gone), *scene.fatals(gone)]
    word = "" if ended or broke else ", and left no word of an end"
    yield weighing(6, "exit-status", f"{who} has no process any more{word}", job)
    yield from others_go_on(scene)
    if left := outlived_by(scene, gone):
        says = (
            f"Pid {left[0].pid}, which it had forked, lives on: no handler of its end ran, as where"
            " SIGKILL ends a process"
        )
        yield weighing(10, "process-state-and-locks", says, *left)
    if broke:
        yield weighing(-26, "suspects-log", "Its output ends with an error of its own", *broke)
    elif ended:
        says = f"It said «{short(ended[0].ends, 100)}» before"
        yield weighing(-10, "suspects-log", says, ended[0].output)
    if line is not None:
        says = f"The kernel killed pid {line.pid} ({line.name}) for lack of memory"
        yield weighing(-13, "kernel-log", says, line)


def _weigh(scene: Scene) -> Weighings:
    given = broken(scene, "died")
    if killed_by(given) in OUTSIDE and given is not None and not given.details.get("oom_kills"):
        yield from weigh_broken(given, 26)
    yield from _gone(scene)
    for end in _killed(scene):
        if end.how == "oom_killed" or (end.oom_rise or 0) > 0:
            says = (
                f"The count of out-of-memory kills rose by {end.oom_rise or 1} when rank {end.rank}"
                " died"
            )
            yield weighing(-26, "host-pressure", says, end)
            continue
        if end.place is not None:
            yield from _from_log(scene, end)
            continue
        if end.seen_by == PRINTED:
            says = f"Rank {end.rank} has no process, and the output says «{short(end.reason, 120)}»"
            yield weighing(13, "exit-status", says, end, scene.live)
            yield from others_go_on(scene)
            continue
        says = (
            f"Rank {end.rank} was ended by {end.signal_name}, which neither trainprobe nor the"
            " launcher sent"
        )
        yield weighing(13, "exit-status", says, end)
        line = next((kill for kill in scene.oom_kills if kill.pid == end.pid), None)
        memory = scene.memory
        if line is not None:
            says = f"The kernel log says that pid {end.pid} was killed for lack of memory"
            yield weighing(-26, "kernel-log", says, line)
        elif memory is not None and memory.oom_kill_rise is not None and memory.oom_kill_rise > 0:
            says = f"The count of out-of-memory kills rose by {memory.oom_kill_rise} in this run"
            yield weighing(-26, "host-pressure", says, memory)
        elif end.oom_rise == 0 or (memory is not None and memory.oom_kill_rise == 0):
            says = (
                "The count of out-of-memory kills did not rise, so the signal came from somewhere"
                " else"
            )
            yield weighing(13, "host-pressure", says, memory, end)
        if scene.others and scene.exceptions(scene.others, echo=True):
            says = "The other ranks broke after it, with errors that only repeat its end"
            yield weighing(3, "other-stacks", says, *scene.exceptions(scene.others, echo=True))


def _from_log(scene: Scene, end: RankEnding) -> Weighings:
    """A log shows who was ended by a signal, and seldom by whom."""
    who = "A process"
    if end.rank is not None:
        who = ranks_say([end.rank])
    elif end.pid:
        who = f"Process {end.pid}"
    alone = (
        len([one for one in scene.endings(scene.world) if one.signal_name == end.signal_name]) == 1
    )
    points = 3  # SIGKILL without a word is memory far more often than a person
    by_another = end.signal_name != "SIGKILL" and alone
    if by_another and end.rank is not None and len(scene.world) > 1:
        points = 10
    yield weighing(points, "exit-status", f"{who} was ended by {end.signal_name}", end)
    sent = scene.events("process-reaped", "liveness-failed", "interrupted")
    if sent:
        own = str(end.pid) in (sent[0].captured.get("pid"), sent[0].captured.get("id"))
        yield quote(26 if own else 13, "The output says who sent it", sent[0])
    memory = [*scene.events("oom-killer", "ray-oom"), *scene.oom_kills]
    if memory:
        yield weighing(-26, "kernel-log", "Something was killed for lack of memory", memory[0])
    if (
        outside := scene.events("preempted", "launcher-signalled", "node-failed", "evicted")
    ) and end.signal_name != "SIGKILL":
        says = f"The whole job was told to end: {short(outside[0].line, 100)}"
        yield weighing(-10, "scheduler", says, outside[0])


def _summary(scene: Scene) -> str:
    end = next(iter(_killed(scene)), None)
    if end is None and (given := broken(scene, "died")) is not None:
        return given.says
    if end is None and absent(scene):
        return (
            f"{subject(scene, absent(scene))} has no process any more, and nobody ended the other"
            " ranks with it"
        )
    name, pid = (
        (end.signal_name or "a signal", f" (pid {end.pid})" if end.pid else "")
        if end is not None
        else ("a signal", "")
    )
    after = f" after {end.took_s:.1f} s" if end is not None and end.took_s else ""
    return f"{subject(scene)}{pid} was ended from outside by {name}{after}"


def _fixes(scene: Scene) -> Fixes:
    end = next(iter(_killed(scene)), None)
    number, pid = (end.signal or 9, end.pid or 0) if end is not None else (9, 0)
    return (
        fix(
            "Ask the scheduler",
            "sacct -j $SLURM_JOB_ID --format=JobID,State,ExitCode,Reason   (where the job ran under"
            " Slurm)",
            "kubectl describe pod POD   (in Kubernetes)",
        ),
        admin_fix(
            "Watch who sends it next time",
            f"bpftrace -e 'tracepoint:signal:signal_generate /args->sig == {number}/ {{ printf(\"%s"
            " %d -> %d\\n\", comm, pid, args->pid); }'",
            f"journalctl --since '-1h' | grep -w {pid}" if pid else "",
        ),
    )


CAUSE = Cause(
    id="rank-killed",
    title="A rank was killed from outside",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="the kernel log (dmesg) and the cgroup's memory.events at the time of the kill",
)
