"""Logs in which ranks only gave up waiting: who did not come, who was in another call, and for
how long the others waited.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from trainprobe.facts import CollectiveCall, Facts, LogFailure, LogJob
from trainprobe.facts.collectives import NO_NUMBER
from trainprobe.model.diagnosis import Link
from trainprobe.waits.absentees import TIMEOUTS, absentees, given_up, world_of
from trainprobe.waits.divergence import camps_say, ranks_say
from trainprobe.waits.suspects import Divergence, SuspectGroup

PROBE = "job"


def hang_group(
    facts: Facts, job: LogJob, failures: Sequence[LogFailure], divergence: Divergence | None
) -> SuspectGroup | None:
    """The suspects where ranks only gave up waiting; None where nobody waited."""
    late = [failure for failure in failures if failure.echo_of in TIMEOUTS]
    calls = given_up(facts, job.cell)
    if not late and not calls:
        return None
    world = world_of(job, failures)
    if divergence is not None:
        return _parted(job, world, calls, divergence)
    missing = absentees(facts, job.cell)
    places = _at_places(late)
    if places and (missing is None or not missing.named):
        return _apart(job, world, late, places)
    absent = missing.ranks if missing is not None else ()
    first = min(calls, key=lambda call: call.place or 0, default=None)
    shown = calls[0] if calls else None
    meeting = _meeting(shown)
    ids = tuple(
        dict.fromkeys(
            [
                *(id_ for one in calls for id_ in one.evidence),
                *(id_ for failure in late for id_ in failure.evidence),
            ]
        )
    )[:16]
    waiters = sorted(
        {
            failure.rank
            for failure in late
            if failure.rank is not None and failure.rank not in absent
        }
        | ({one.rank for one in calls if one.rank is not None} - set(absent))
    )
    seconds = f" after {shown.timeout_s:g} s" if shown is not None and shown.timeout_s else ""
    if missing is not None:
        says = f"{ranks_say(absent)} did not join {meeting}{seconds}: {missing.why}"
        how = "never-joined"
    elif late and not calls:
        says = f"{_who(late[0])} {late[0].says} ({late[0].seen_at}), and nothing failed before"
        how = "never-joined"
    else:
        who = (
            "all ranks"
            if waiters and len(waiters) == len(world) > 1
            else ranks_say(waiters)
            if waiters
            else "a rank"
        )
        says = (
            f"{who} gave up waiting in {meeting}{seconds}"
            + (f" ({first.seen_at})" if first is not None else "")
            + ", and nothing failed before"
        )
        how = "stuck-inside"
    chain = (
        (Link(ranks_say(waiters), ranks_say(absent), f"waited in {meeting} for", ids),)
        if waiters and absent
        else ()
    )
    return SuspectGroup(
        cell=job.cell,
        probe=PROBE,
        ranks=absent,
        how=how,  # type: ignore[arg-type]
        says=says[:1].upper() + says[1:],
        mode="hang",
        victims=tuple(waiters) if absent else (),
        chain=chain,
        evidence=ids,
        world_size=max(len(world), 1),
        camps=(absent, tuple(waiters)) if absent and waiters else (),
    )


def _at_places(late: Sequence[LogFailure]) -> dict[str, list[int]]:
    """The ranks by the line at which they gave up, where that is known of each and not the same
    of all.
    """
    first: dict[int, str] = {}
    for failure in late:
        if failure.rank is not None:
            first.setdefault(failure.rank, failure.where)
    places: dict[str, list[int]] = defaultdict(list)
    for rank, where in first.items():
        places[where].append(rank)
    return places if len(places) > 1 and "" not in places else {}


def _apart(
    job: LogJob, world: Sequence[int], late: Sequence[LogFailure], apart: Mapping[str, list[int]]
) -> SuspectGroup:
    ordered = sorted(
        ((tuple(sorted(ranks)), where) for where, ranks in apart.items()),
        key=lambda pair: (len(pair[0]), pair[0]),
    )
    least = [camp for camp, _ in ordered if len(camp) == len(ordered[0][0])]
    suspects = tuple(sorted(rank for camp in least for rank in camp))
    parts = ", ".join(f"{ranks_say(camp)} at {where}" for camp, where in ordered)
    ids = tuple(dict.fromkeys(id_ for failure in late for id_ in failure.evidence))[:16]
    return SuspectGroup(
        cell=job.cell,
        probe=PROBE,
        ranks=suspects,
        how="cycle",
        says=f"The ranks gave up waiting at different places: {parts}",
        mode="hang",
        victims=tuple(rank for rank in world if rank not in suspects),
        evidence=ids,
        world_size=max(len(world), 1),
        camps=tuple(camp for camp, _ in ordered),
    )


def _who(failure: LogFailure) -> str:
    return ranks_say((failure.rank,)) if failure.rank is not None else "A rank"


def _meeting(one: CollectiveCall | None) -> str:
    if one is None:
        return "the meeting of all ranks"
    return f"{one.op or 'a collective'}{f' #{one.number}' if one.number != NO_NUMBER else ''}"


def _parted(
    job: LogJob, world: Sequence[int], calls: Sequence[CollectiveCall], divergence: Divergence
) -> SuspectGroup:
    least = [camp for camp in divergence.camps if len(camp) == len(divergence.camps[0])]
    suspects = tuple(sorted(rank for camp in least for rank in camp))
    ids = tuple(dict.fromkeys(id_ for one in calls for id_ in one.evidence))[:16]
    return SuspectGroup(
        cell=job.cell,
        probe=PROBE,
        ranks=suspects,
        how="cycle",
        says=f"The ranks part at collective #{divergence.position}: {camps_say(divergence)}",
        mode="hang",
        victims=tuple(rank for rank in world if rank not in suspects),
        evidence=ids,
        world_size=max(len(world), 1),
        camps=divergence.camps,
        divergence=divergence,
    )
