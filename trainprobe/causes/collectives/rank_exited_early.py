"""A rank finished normally while the others still expect it.

An early `return`, a `sys.exit(0)` on a condition that only one rank meets, a budget or a file that
ends sooner: the rank leaves with exit code 0, which looks like success. The others go on to their
next collective and then break ("Connection closed by peer") or wait for ever.

It is recognised by exit code 0 of this rank before any other ended, or by one that only
`sys.exit(3)` and its like give, with the others inside a collective, or broken by echoes of its
end. Where the ranks' loaders hold a different number of
batches, `uneven-inputs` says it better. It is ruled out when the rank ended with an error, or when
no rank needed it any more.

Of a log it is recognised by a rank's words that it was done or had no more data, while others gave
up or broke afterwards.
"""

from __future__ import annotations

import re

from trainprobe.causes.awaited import at_exit, last_in_own_code
from trainprobe.causes.batches import batch_counts
from trainprobe.causes.cause import Cause
from trainprobe.causes.collective_calls import left as left_by_words
from trainprobe.causes.collective_calls import of_left
from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.causes.network.rendezvous_incomplete import absent
from trainprobe.causes.phrases import Fixes, fix, ranks_say, short, subject, verb
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.causes.vanished_ranks import gone
from trainprobe.facts import LogEvent, LogJob, LogProgress, MainThread, Output, RankEnding
from trainprobe.waits.dump_hangs import only_dumps
from trainprobe.waits.left_alone import left_alone

# Python ends with 1 for an exception, 2 for wrong arguments and 120 where its output cannot be
# written; shells and `timeout` use those from 124 on. Any other was asked for in so many words.
_OWN_CODES = frozenset(range(3, 124)) - {120}


def _left(scene: Scene) -> tuple[RankEnding, ...]:
    """The suspects that ended by themselves: with exit code 0 or, where others wait for them, with
    one that no exception gives, and without one.
    """
    codes = {0} | (_OWN_CODES if scene.group.mode == "hang" else set())
    own = [end for end in scene.endings(scene.ranks) if not (end.by_us or end.by_launcher)]
    raised = {error.rank for error in scene.exceptions(scene.ranks)}
    return tuple(
        end
        for end in own
        if end.how == "exited" and end.code in codes and (end.code == 0 or end.rank not in raised)
    )


def _ended_inside(scene: Scene) -> tuple[MainThread, ...]:
    """The suspects' main threads, where each has come to its end without an exception, and only a
    thread of its own keeps the process, while others wait in a collective.
    """
    threads = scene.threads(scene.ranks)
    over = bool(threads) and all(at_exit(thread) for thread in threads)
    raised = scene.exceptions(scene.ranks)
    return threads if over and not raised and scene.waiting(scene.others) else ()


def _weigh(scene: Scene) -> Weighings:
    yield from gone(scene)
    if over := _ended_inside(scene):
        waiting = scene.waiting(scene.others)
        says = (
            f"{ranks_say(scene.ranks)} came to the end of the program; a thread keeps the process"
        )
        yield weighing(13, "suspects-stack", says, *over)
        says = f"{ranks_say([one.rank or 0 for one in waiting])} still wait in a collective"
        yield weighing(10, "other-stacks", says, *waiting)
    yield from of_left(scene, Timeouts(scene))
    yield from gave_up(scene)
    yield from _takes_leave(scene)
    yield from _of_another_host(scene)
    left = _left(scene)
    failed = [end for end in scene.endings(scene.ranks) if end.abnormal]
    if failed and not left:
        says = f"Rank {failed[0].rank} ended with an error, not by its own choice"
        yield weighing(-26, "exit-status", says, *failed)
    if not left or not scene.others:
        return
    waiting = scene.waiting(scene.others)
    echoes = scene.exceptions(scene.others, echo=True)
    ended = [end for end in scene.endings(scene.others) if not (end.by_us or end.by_launcher)]
    if len(ended) == len(scene.others) and all(
        end.how == "exited" and end.code == 0 for end in ended
    ):
        yield weighing(-26, "exit-status", "All other ranks ended with exit code 0 as well", *ended)
        return
    code = left[0].code
    says = f"{ranks_say(scene.ranks)} ended with exit code {code} while the job went on"
    if code:
        says += f", as sys.exit({code}) and os._exit({code}) do and no exception does"
    yield weighing(13, "exit-status", says, *left)
    if waiting:
        says = f"{ranks_say([thread.rank or 0 for thread in waiting])} still wait in a collective"
        yield weighing(10, "other-stacks", says, *waiting)
    elif echoes:
        ranks = sorted({error.rank for error in echoes if error.rank is not None})
        says = f"{ranks_say(ranks)} broke afterwards because a peer was gone"
        yield weighing(10, "other-stacks", says, *echoes)
    counts = batch_counts(scene)
    if counts is not None and counts.apart >= 2:
        yield weighing(-10, "source", f"The loaders are uneven: {counts.says}", *counts.facts)


def _of_another_host(scene: Scene) -> Weighings:
    """The launcher of one host is done, and the ranks of another have lost a peer."""
    alone = left_alone(scene.of(LogProgress), scene.of(LogEvent))
    if alone is not None and scene.live is None:
        done, lost = alone
        says = (
            f"A launcher ended as if all were done («{short(done.finished_line, 80)}»), while"
            f" others lost a peer: {short(lost.line, 80)}"
        )
        yield weighing(13, "suspects-log", says, done, lost)


def _takes_leave(scene: Scene) -> Weighings:
    """A dumped stack stands where a rank gives up its process group, and does not come out: it
    has left its loop, and others have not.
    """
    told = scene.one(LogJob) is not None if scene.live is None else only_dumps(scene.live)
    if not told or scene.group.mode != "hang":
        return
    leaves = _leaving(scene)
    if leaves:
        where = leaves[0].where or "the end of the program"
        says = f"A rank has left its loop and waits in destroy_process_group at {where}"
        yield weighing(13, "suspects-stack", says, *leaves[:4])


def _leaving(scene: Scene) -> list[MainThread]:
    """Ranks that stand where the process group is given up, if they are not all."""
    threads = scene.threads(scene.world)
    leaves = [thread for thread in threads if thread.op == "destroy_process_group"]
    return leaves if len(leaves) < max(len(threads), 2) else []


def _summary(scene: Scene) -> str:
    left = _left(scene)
    if not left and (printed := next(of_left(scene, Timeouts(scene)), None)) is not None:
        return printed.says
    if not left and (words := next(gave_up(scene), None)) is not None:
        return (
            f"{subject(scene)} left while the others still needed it:"
            f" {words.says[:1].lower()}{words.says[1:]}"
        )
    if not left and (apart := next(_of_another_host(scene), None)) is not None:
        return f"The workers of one host left while others still needed them: {apart.says}"
    if over := _ended_inside(scene):
        last = last_in_own_code(scene, over[0])
        thread = f" (its thread at {last} keeps the process)" if last else ""
        return (
            f"{subject(scene)} came to the end of the program{thread} while"
            f" {ranks_say(scene.others, capital=False)} still needed it"
        )
    if not left and (leaving := next(_takes_leave(scene), None)) is not None:
        return f"{leaving.says}, for which the others must have left theirs too"
    gone = absent(scene)
    if gone and not left:
        rest = [rank for rank in scene.world if rank not in gone]
        whom = f"{ranks_say(rest, capital=False)} still {verb(rest, 'needs', 'need')} it"
        return (
            f"{subject(scene, gone)} {verb(gone, 'has', 'have')} no process any more while {whom}"
        )
    steps = [
        progress.optimizer_steps
        for progress in scene.progress(scene.ranks)
        if progress.optimizer_steps is not None
    ]
    after = ""
    if steps:
        after = f" after {steps[0]} steps"
    elif left and left[0].took_s:
        after = f" after {left[0].took_s:.1f} s"
    return (
        f"{subject(scene)} left with exit code {left[0].code if left else 0}{after} while"
        f" {ranks_say(scene.others, capital=False)} still needed it"
    )


def _fixes(scene: Scene) -> Fixes:
    script = scene.plan.script or "*.py"
    return (
        fix(
            "Find the way out that only this rank takes",
            f"grep -nE 'sys\\.exit|os\\._exit|return|break' {script}",
            "look for a condition whose value differs between ranks",
        ),
        fix(
            "Let all ranks decide together",
            "stop = torch.tensor([int(done)], device=device); dist.all_reduce(stop,"
            " op=dist.ReduceOp.MAX)",
            "leave the loop on all ranks when stop.item() is 1",
        ),
    )


# Of a log: a rank that says that it gives up, and leaves without an error of its own.
_GIVES_UP = re.compile(
    r"(?i)\b(?:giving up|aborting|exiting|quitting|bailing out|(?:cannot|can't) continue|nothing"
    r" (?:more|left) to do|stopping here)\b"
)
LAST_LINES = 3


def gave_up(scene: Scene) -> Weighings:
    """The last words in the log of the one rank that left while the others lost their peer."""
    echoes = scene.exceptions(scene.others, echo=True)
    if scene.group.how != "not-visible" or not echoes or scene.one(LogJob) is None:
        return
    outputs = [output for rank in (*scene.ranks, None) for output in scene.of(Output, rank=rank)]
    for output in outputs:
        line = first_found(
            line for line in output.tail.splitlines()[-LAST_LINES:] if _GIVES_UP.search(line)
        )
        if line is not None:
            yield weighing(
                10, "suspects-log", f"The last that it said is «{short(line, 100)}»", output
            )
            says = (
                f"{ranks_say([error.rank or 0 for error in echoes])} broke afterwards because a"
                " peer was gone"
            )
            yield weighing(6, "other-stacks", says, *echoes)
            return


CAUSE = Cause(
    id="rank-exited-early",
    title="A rank left normally while the others expect it",
    modes=("crash", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=lambda scene: absent(scene) or left_by_words(scene, Timeouts(scene)) or scene.ranks,
    would_settle="print len(loader) and the reason for leaving on each rank before main() returns",
)
