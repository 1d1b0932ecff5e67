"""Which job is meant, by a pid or as the user's only one here, and who belongs to it now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from trainprobe.attach.pace import at_once
from trainprobe.collect.live_environment import own_number
from trainprobe.collect.members import Member
from trainprobe.collect.rank_locals import RankLocals, read_rank_locals
from trainprobe.errors import UsageError
from trainprobe.model.progress import Progress, Silence
from trainprobe.targets.jobs import (
    MOST_LISTED,
    SORTED_S,
    LiveJob,
    RankHint,
    find_jobs,
    job_of,
    with_hints,
    without,
)

HINTS_S = 2.0
GUESSED = (
    "",
    "only-process",
    "start-order",
    "gpu-order",
    "sockets",
    "siblings",
)  # sources of a rank's number that its own frames are better than

Choose = Callable[[Sequence[str]], int]


def find_target(
    pid: int | None,
    choose: Choose | None = None,
    progress: Progress | None = None,
    deadline_s: float = SORTED_S,
) -> LiveJob:
    """Return the job of `pid`, or the only one without it. Of several, `choose` gets one line for
    each and returns the place of one.

    Raises UsageError, with what to do, where there is none, or several and nobody to choose.
    """
    return numbered(
        job_of(pid) if pid is not None else _only(choose, progress or Silence(), deadline_s)
    )


def numbered(job: LiveJob) -> LiveJob:
    """Read the live environment of ranks whose numbers are guesses; ask the frames of those that
    have none, which pauses them for some milliseconds.
    """
    unsure = [
        Member(rank.rank, rank.pid, "rank", rank.started_ticks)
        for rank in job.ranks
        if rank.wait_status is None and (rank.rank is None or rank.rank_source in GUESSED)
    ]
    if not unsure or (len(job.ranks) == 1 and not job.others):
        return job
    started: set[int] = set()
    if len(job.ranks) == 1:
        # What looks like a single process may have started the ranks.
        started = {
            other.pid for other in job.others if other.ppid == job.ranks[0].pid and not other.sure
        }
        unsure += [
            Member(other.rank, other.pid, other.role, other.started_ticks)
            for other in job.others
            if other.role in ("child", "loader-worker")
        ]
    found = {
        member.pid: number
        for member in unsure
        if member.role == "rank" or member.pid in started
        for number in [own_number(member.pid)]
        if number is not None
    }
    # A library may have set the same number in all of them, where it knew of none.
    claimed = Counter(number.rank for number in found.values())
    found = {pid: number for pid, number in found.items() if claimed[number.rank] == 1}
    hints = {
        pid: RankHint(number.rank, number.local_rank, number.world_size, "environment")
        for pid, number in found.items()
    }
    unsure = [member for member in unsure if member.pid not in hints]
    local = read_rank_locals(unsure, deadline_s=HINTS_S, at_once=at_once()) if unsure else {}
    # a notebook's launcher says of each of its processes that it is alone on its node
    here = job.nnodes in (None, 1) or job.world_size == len(job.ranks)
    hints |= {pid: _hint(number, single_host=here) for pid, number in local.items()}
    by_spawn = any(number.spawned is not None for number in local.values())
    beside = {pid for pid, number in local.items() if number.beside} if by_spawn else set()
    return with_hints(without(job, beside), hints)


def members_of(job: LiveJob) -> list[Member]:
    """Return everybody of the job to look at, ranks first."""
    return [
        Member(member.rank, member.pid, member.role, member.started_ticks)
        for member in job.members()
    ]


def earlier_of(job: LiveJob) -> dict[int, list[Member]]:
    """Return the surviving processes of earlier elastic attempts, by attempt."""
    found: dict[int, list[Member]] = {}
    for former in job.earlier_attempts:
        found.setdefault(former.attempt if former.attempt is not None else 0, []).append(
            Member(None, former.pid, "rank", former.started_ticks)
        )
    return found


def members_now(job: LiveJob, members: Sequence[Member]) -> list[Member]:
    """Return `members`, also those that have gone, and whoever has joined the job since."""
    try:
        now = members_of(job_of(job.pid))
    except UsageError:
        return list(members)
    known = {(member.pid, member.started_ticks) for member in members}
    joined = [member for member in now if (member.pid, member.started_ticks) not in known]
    # Where nobody is known any more, the pid belongs to another job now.
    return [*members, *joined] if len(joined) < len(now) else list(members)


def _only(choose: Choose | None, progress: Progress, deadline_s: float) -> LiveJob:
    progress.note("Looking for the training jobs of this host.")
    jobs = find_jobs(deadline_s=deadline_s)
    progress.note("")  # not into the question which of them is meant
    if not jobs:
        raise UsageError(
            "No training job of yours runs on this host.",
            "Run it on the job's node and as its user, or name any process of it: trainprobe attach"
            " PID. Where it has ended, `trainprobe explain LOG` says why.",
        )
    if len(jobs) == 1:
        return jobs[0]
    lines = [job.line for job in jobs[:MOST_LISTED]]
    if choose is not None:
        return jobs[choose(lines)]
    more = [f"and {len(jobs) - MOST_LISTED} more"] if len(jobs) > MOST_LISTED else []
    raise UsageError(
        f"{len(jobs)} training jobs run on this host.",
        "Name one: trainprobe attach PID.",
        [*lines, *more],
    )


def _hint(local: RankLocals, *, single_host: bool) -> RankHint:
    rank = local.rank if local.rank is not None or not single_host else local.spawned
    return RankHint(
        rank, local.local_rank if local.local_rank is not None else local.spawned, local.world_size
    )
