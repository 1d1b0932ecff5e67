"""What is said of a live job's verdict beside it: what leaves its health open, and what may
be worth a look though nobody is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainprobe.facts import Facts, Job, Samples
from trainprobe.facts.samples import between_hosts, own_line
from trainprobe.model.node_names import folded
from trainprobe.model.unnumbered import pid_of
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.situation import Situation
from trainprobe.waits.suspects import PROBE, SuspectGroup
from trainprobe.waits.unlike_ranks import unlike_ranks

OWN_LINE_SHARE = 0.4
"""From this share of the sampled time on, a line of the user's is worth a look."""
NEARLY_ALL = 0.9
"""Who trains computes for more than a tenth of the time."""


def with_own_line(view: Situation, facts: Facts) -> Situation:
    """Where nobody is late, a job may still be slow on all ranks alike: what it does there is said,
    though nobody here knows how long it should take.
    """
    if view.verdict not in ("healthy", "undetermined"):
        return view
    place, share, sampled_s = own_line(facts.of(Samples, cell=view.cell))
    if share < OWN_LINE_SHARE:
        return view
    says = (
        f"the main threads were at {place}, outside of torch, for {share:.0%} of the"
        f" {sampled_s:.0f} s sampled"
    )
    return replace(view, remarks=(*view.remarks, says))


def unlike(view: Situation, facts: Facts, job: Job) -> Situation:
    """What the ranks do not share and may rightly not is said beside what ails them."""
    if view.verdict == "healthy":
        return view
    says = tuple(one.says for one in unlike_ranks(facts, job) if not one.fault)
    return replace(view, remarks=(*view.remarks, *says)) if says else view


def earned(view: Situation, facts: Facts, job: Job) -> Situation:
    """Health is of all ranks: processes that may be any rank, and ranks of hosts that nobody
    looked at, leave it open. So does a look that was wanted and for which no time was left.
    """
    lives = all(one.ending is None for one in view.ranks)
    if job.torch is False and view.verdict in ("healthy", "undetermined") and lives:
        return replace(
            view, verdict="undetermined", conclusive=False, says=_no_training(view), next_look=""
        )
    if view.verdict != "healthy":
        return view
    unknown = [one.rank for one in view.ranks if pid_of(one.rank) is not None]
    # where none has a number, as many as the world has are all of them
    whole = len(unknown) == len(view.ranks) == job.world_size and not job.elsewhere
    doubts = (
        [
            (
                f"nobody knows the {'rank' if len(unknown) == 1 else 'ranks'} of "
                f"{_processes(unknown)},"
                " so one may be missing"
            )
        ]
        if unknown and not whole
        else []
    )
    if job.absent and job.elsewhere:
        doubts.append(
            f"{ranks_say(job.absent)} of {job.world_size}, on other hosts or missing,"
            " could not be looked at"
        )
    between = between_hosts(facts.of(Samples, cell=job.cell))
    if between >= NEARLY_ALL:
        doubts.append(
            f"all ranks were in collectives for at least {between:.0%} of the sampled time, so what"
            " they send each other, or the way between the hosts, may be slow"
        )
    doubts += [late.reason.partition(";")[0] for late in facts.refused("time", cell=job.cell)]
    return (
        replace(
            view,
            verdict="undetermined",
            conclusive=False,
            says=f"{view.says}; but {' and '.join(doubts)}",
        )
        if doubts
        else view
    )


def unlaunched(view: Situation, job: Job) -> Situation:
    """Ranks that go on without their launcher are at risk: nobody would end or restart them."""
    lost = [one for one in view.ranks if one.pid in job.orphaned]
    if not lost:
        return view
    hosts = tuple(dict.fromkeys(one.host for one in lost if one.host))
    ranks = tuple(one.rank for one in lost)
    says = f"the launcher of {ranks_say(ranks)}{f' on {folded(hosts)}' if hosts else ''} is gone"
    if view.verdict != "healthy":
        return replace(view, remarks=(*view.remarks, says))
    risk = "nobody ends or restarts them when one of them fails"
    group = SuspectGroup(
        cell=view.cell,
        probe=PROBE,
        ranks=ranks,
        how="left",
        says=says,
        mode="check",
        evidence=job.evidence,
        world_size=len(view.ranks),
        hosts=hosts,
    )
    says = f"{view.says}; but {says}, and {risk}"
    return replace(view, verdict="at-risk", says=says, groups=(group,))


def _no_training(view: Situation) -> str:
    """A server, or a script before its first import: that it does not hang says nothing about a
    training.
    """
    pid = next((one.pid for one in view.ranks if one.pid), None)
    who = f"process {pid}" if pid else "this process"
    return (
        f"{who} shows no sign of a training job: it has no torch in memory, no rank and no"
        " launcher. If it has yet to import torch, attach again later; `trainprobe attach` without"
        " a pid lists the training jobs of this host"
    )


def _processes(unknown: Sequence[int]) -> str:
    pids = [str(pid_of(rank)) for rank in unknown]
    return (
        f"process{'es' if len(pids) > 1 else ''}"
        f" {', '.join(pids[:8])}{' and others' if len(pids) > 8 else ''}"
    )
