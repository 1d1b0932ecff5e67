"""Logs in which ranks only gave up waiting: who did not come, who was in another call, and for how long the others waited."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from trainprobe.facts import CollectiveCall, Facts, LogEvent, LogFailure, LogJob
from trainprobe.facts.collectives import NO_NUMBER, POINT_TO_POINT, WATCHDOG
from trainprobe.facts.timed_out_calls import FIRST
from trainprobe.model.diagnosis import Link
from trainprobe.stacks.tree import unfold_ranks
from trainprobe.waits.divergence import camps_say, ranks_say
from trainprobe.waits.logged_stacks import apart as stacks_apart
from trainprobe.waits.suspects import Divergence, SuspectGroup

PROBE = "job"
# Echoes that mean that somebody was waited for in vain.
TIMEOUTS = frozenset(
    {
        "collective-timeout",
        "barrier-timeout",
        "store-timeout",
        "rendezvous-timeout",
        "peer-timeout",
        "watchdog-stuck",
        "store-barrier",
        "world-incomplete",
        "missing-ranks",
        "recorder-culprit",
        "desync",
        "desync-rank",
        "unique-id-timeout",
    }
)
# A timeout of one of these without a number is no watchdog's.
_UNNUMBERED = POINT_TO_POINT | {"barrier", FIRST, ""}
_WORKERS = re.compile(
    r"world_size[=: ]{1,3}(?P<world>\d{1,7})\D{1,40}worker_count[=: ]{1,3}(?P<count>\d{1,7})|(?P<came>\d{1,7})/(?P<all>\d{1,7}) clients joined"
)


def hang_group(facts: Facts, job: LogJob, failures: Sequence[LogFailure], divergence: Divergence | None) -> SuspectGroup | None:
    """The suspects where ranks only gave up waiting; None where nobody waited."""
    late = [failure for failure in failures if failure.echo_of in TIMEOUTS]
    given_up = [
        call for call in facts.of(CollectiveCall, cell=job.cell) if call.source == WATCHDOG and not (call.number == NO_NUMBER and call.op in _UNNUMBERED)
    ]
    if not late and not given_up:
        return None
    world = sorted({rank for rank in (*job.ranks, *(failure.rank for failure in failures)) if rank is not None} | set(range(min(job.world_size or 0, 65536))))
    named = named_absent(facts, job.cell)
    if divergence is not None:
        return _parted(job, world, given_up, divergence)
    apart = _at_places(late) if not named[0] else {}
    if apart:
        return _apart(job, world, late, apart)
    absent, why = named if named[0] else stacks_apart(facts, job.cell)
    absent, why = (absent, why) if absent else behind(facts, job, world, given_up, failures)
    first = min(given_up, key=lambda call: call.place or 0, default=None)
    shown = given_up[0] if given_up else None
    meeting = _meeting(shown)
    ids = tuple(dict.fromkeys([*(id_ for one in given_up for id_ in one.evidence), *(id_ for failure in late for id_ in failure.evidence)]))[:16]
    waiters = sorted(
        {failure.rank for failure in late if failure.rank is not None and failure.rank not in absent}
        | ({one.rank for one in given_up if one.rank is not None} - set(absent))
    )
    seconds = f" after {shown.timeout_s:g} s" if shown is not None and shown.timeout_s else ""
    if absent:
        says = f"{ranks_say(absent)} did not join {meeting}{seconds}: {why}"
        how = "never-joined"
    elif late and not given_up:
        says = f"{_who(late[0])} {late[0].says} ({late[0].seen_at}), and nothing failed before"
        how = "never-joined"
    else:
        who = "all ranks" if waiters and len(waiters) == len(world) > 1 else ranks_say(waiters) if waiters else "a rank"
        says = f"{who} gave up waiting in {meeting}{seconds}" + (f" ({first.seen_at})" if first is not None else "") + ", and nothing failed before"
        how = "stuck-inside"
    chain = (Link(ranks_say(waiters), ranks_say(absent), f"waited in {meeting} for", ids),) if waiters and absent else ()
    return SuspectGroup(
        cell=job.cell, probe=PROBE, ranks=tuple(absent), how=how, says=says[:1].upper() + says[1:], mode="hang", victims=tuple(waiters) if absent else (),  # type: ignore[arg-type]
        chain=chain, evidence=ids, world_size=max(len(world), 1), camps=(tuple(absent), tuple(waiters)) if absent and waiters else (),
    )  # fmt: skip


def _at_places(late: Sequence[LogFailure]) -> dict[str, list[int]]:
    """The ranks by the line at which they gave up, where that is known of each and not the same of all."""
    first: dict[int, str] = {}
    for failure in late:
        if failure.rank is not None:
            first.setdefault(failure.rank, failure.where)
    places: dict[str, list[int]] = defaultdict(list)
    for rank, where in first.items():
        places[where].append(rank)
    return places if len(places) > 1 and "" not in places else {}


def _apart(job: LogJob, world: Sequence[int], late: Sequence[LogFailure], apart: Mapping[str, list[int]]) -> SuspectGroup:
    ordered = sorted(((tuple(sorted(ranks)), where) for where, ranks in apart.items()), key=lambda pair: (len(pair[0]), pair[0]))
    least = [camp for camp, _ in ordered if len(camp) == len(ordered[0][0])]
    suspects = tuple(sorted(rank for camp in least for rank in camp))
    parts = ", ".join(f"{ranks_say(camp)} at {where}" for camp, where in ordered)
    ids = tuple(dict.fromkeys(id_ for failure in late for id_ in failure.evidence))[:16]
    return SuspectGroup(
        cell=job.cell, probe=PROBE, ranks=suspects, how="cycle", says=f"The ranks gave up waiting at different places: {parts}", mode="hang",
        victims=tuple(rank for rank in world if rank not in suspects), evidence=ids, world_size=max(len(world), 1), camps=tuple(camp for camp, _ in ordered),
    )  # fmt: skip


def _who(failure: LogFailure) -> str:
    return ranks_say((failure.rank,)) if failure.rank is not None else "A rank"


def _meeting(one: CollectiveCall | None) -> str:
    if one is None:
        return "the meeting of all ranks"
    return f"{one.op or 'a collective'}{f' #{one.number}' if one.number != NO_NUMBER else ''}"


def named_absent(facts: Facts, cell: str) -> tuple[tuple[int, ...], str]:
    """Ranks that a message names as those who did not come: monitored barrier, desync report, flight recorder's analysis."""
    for event in facts.of(LogEvent, cell=cell):
        captured = event.captured
        told = captured.get("ranks", "") or captured.get("rank", "")
        ranks: tuple[int, ...] = ()
        if event.event in ("barrier-timeout", "unique-id-timeout"):
            ranks = _ranks_in(captured.get("ranks", "") if event.event == "unique-id-timeout" else told)
        elif event.event == "gil-held" and event.rank is not None:
            ranks = (event.rank,)
        elif event.event in ("desync", "missing-ranks", "recorder-missing-ranks"):
            ranks = _ranks_in(told)
        elif event.event == "desync-rank" and "missed" in captured:
            others = [one.captured for one in facts.of(LogEvent, cell=cell) if one.event == "desync-rank" and one.captured.get("missed") == captured["missed"]]
            ranks = _ranks_in(" ".join(one.get("ranks", "") or one.get("rank", "") for one in others))
        if ranks:
            return ranks, f"{event.seen_at} says so"
    return (), ""


def _ranks_in(text: str) -> tuple[int, ...]:
    parts = re.findall(r"\d{1,7}(?:-\d{1,7})?", text[:2000])
    try:
        return unfold_ranks(",".join(parts))[:4096]
    except ValueError:
        return ()


def behind(facts: Facts, job: LogJob, world: Sequence[int], given_up: Sequence[CollectiveCall], failures: Sequence[LogFailure]) -> tuple[tuple[int, ...], str]:
    """Ranks whose last enqueued call is smaller than that in which the others wait, or that alone say nothing of a timeout."""
    seqs = [one.number for one in given_up if one.number != NO_NUMBER]
    enqueued: dict[int, int] = {}
    for event in facts.of(LogEvent, cell=job.cell):
        if event.event == "nccl-last-work" and event.rank is not None and (last := event.number("enqueued")) is not None:
            enqueued[event.rank] = max(enqueued.get(event.rank, -2), last)
    if seqs and enqueued:
        late = tuple(
            sorted(rank for rank, last in enqueued.items() if last < max(seqs) and not any(one.rank == rank and one.number == max(seqs) for one in given_up))
        )
        if late and len(late) < max(len(world), 2):
            return late, f"the last that {'it' if len(late) == 1 else 'they'} had enqueued is #{enqueued[late[0]]}"
    first = _earliest(given_up)
    if first and len(first) < len({one.rank for one in given_up}):
        return first, "it was at an earlier call than the others" if len(first) == 1 else "they were at an earlier call than the others"
    spoke = {one.rank for one in given_up if one.rank is not None} | {failure.rank for failure in failures if failure.rank is not None}
    silent = tuple(rank for rank in world if rank not in spoke)
    if spoke and silent and job.world_size and len(silent) < len(world) / 2 + 0.5 and set(job.ranks) >= spoke:
        return silent, f"{'it says' if len(silent) == 1 else 'they say'} nothing of a timeout"
    return (), ""


def _earliest(given_up: Sequence[CollectiveCall]) -> tuple[int, ...]:
    """Of ranks that gave up at different numbers of one group those at the smallest, where they are the fewer."""
    by_group: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for one in given_up:
        if one.rank is not None and one.number != NO_NUMBER:
            by_group[one.group][one.number].add(one.rank)
    for seqs in by_group.values():
        if len(seqs) > 1:
            least, most = seqs[min(seqs)], seqs[max(seqs)]
            if len(least - most) and len(least) <= len(most):
                return tuple(sorted(least - most))
    return ()


def _parted(job: LogJob, world: Sequence[int], given_up: Sequence[CollectiveCall], divergence: Divergence) -> SuspectGroup:
    least = [camp for camp in divergence.camps if len(camp) == len(divergence.camps[0])]
    suspects = tuple(sorted(rank for camp in least for rank in camp))
    ids = tuple(dict.fromkeys(id_ for one in given_up for id_ in one.evidence))[:16]
    return SuspectGroup(
        cell=job.cell, probe=PROBE, ranks=suspects, how="cycle", says=f"The ranks part at collective #{divergence.position}: {camps_say(divergence)}", mode="hang",
        victims=tuple(rank for rank in world if rank not in suspects), evidence=ids, world_size=max(len(world), 1), camps=divergence.camps, divergence=divergence,
    )  # fmt: skip
