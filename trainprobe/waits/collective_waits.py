"""In what each rank waits for the others, and whom it waits for: by the flight recorder, which
knows group and number, else by what NCCL's RAS counted, else by what the ranks printed when they
gave up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainprobe.facts import CollectiveCall, Facts, LogFailure
from trainprobe.facts.collectives import COUNTED, NO_NUMBER, WATCHDOG
from trainprobe.waits.absentees import TIMEOUTS, absentees, given_up
from trainprobe.waits.divergence import call_says
from trainprobe.waits.recorder_waits import RecordedWait, recorded_waits, waits_in

MEETING = "the meeting of all ranks"


def collective_waits(facts: Facts, cell: str) -> dict[int, RecordedWait]:
    """Return what each rank waits for, by rank; empty where nothing but stacks tells."""
    counted = (call for call in facts.of(CollectiveCall, cell=cell) if call.source == COUNTED)
    return recorded_waits(facts, cell) or waits_in(counted) or _given_up_waits(facts, cell)


def timed_out(facts: Facts, cell: str) -> tuple[LogFailure, ...]:
    """The failures that mean that somebody was waited for in vain, in their order."""
    late = (one for one in facts.of(LogFailure, cell=cell) if one.echo_of in TIMEOUTS)
    return tuple(sorted(late, key=lambda one: one.order))


def call_given_up(facts: Facts, cell: str) -> CollectiveCall:
    """The call in which the others gave up; of unknown name where no line names it."""
    calls, missing = given_up(facts, cell), absentees(facts, cell)
    absent = missing.ranks if missing is not None else ()
    return (
        next((call for call in calls if call.rank not in absent), calls[0])
        if calls
        else CollectiveCall(
            cell=cell, op=MEETING, number=NO_NUMBER, finished=False, source=WATCHDOG
        )
    )


def _given_up_waits(facts: Facts, cell: str) -> dict[int, RecordedWait]:
    calls, late = given_up(facts, cell), timed_out(facts, cell)
    if not calls and not late:
        return {}
    missing = absentees(facts, cell)
    absent = missing.ranks if missing is not None else ()
    why = missing.why if missing is not None else ""
    call = call_given_up(facts, cell)
    own = {one.rank: replace(call, evidence=one.evidence) for one in reversed(late)}
    own |= {one.rank: one for one in reversed(calls)}
    apart = _at_places(late) if missing is None or not missing.named else {}
    if apart:
        return {
            rank: RecordedWait(
                rank,
                replace(own[rank], op=f"a collective at {place}", number=NO_NUMBER),
                f"a collective at {place}",
                tuple(other for camp in apart.values() if camp != ranks for other in camp),
            )
            for place, ranks in apart.items()
            for rank in ranks
        }
    return {
        rank: RecordedWait(rank, own[rank], call_says(own[rank]), absent, why=why)
        for rank in sorted({rank for rank in own if rank is not None} - set(absent))
    }


def _at_places(late: Sequence[LogFailure]) -> Mapping[str, list[int]]:
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
