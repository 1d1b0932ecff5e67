"""The group of suspects of a cell in which ranks died: the first origin, told apart from the
echoes that follow it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from trainprobe.facts import Facts, FatalSignal, LogEvent, RankEnding, Rung
from trainprobe.model.diagnosis import Link
from trainprobe.model.waits import SuspectHow
from trainprobe.waits.divergence import camps_say, divergence_in, ranks_say
from trainprobe.waits.standings import IN_COLLECTIVE, Standing
from trainprobe.waits.suspects import Divergence, Mode, SuspectGroup

Part = Literal["origin", "mismatch", "echo", "left", "alive"]
_SIGABRT = 6
_NEVER = float("inf")


def crash_groups(facts: Facts, rung: Rung, ranks: Sequence[Standing]) -> tuple[SuspectGroup, ...]:
    """The suspects of a cell in which something died; empty where nothing died abnormally.

    `origin`: a rank that failed of its own. `mismatch`: a rank that failed inside a collective,
    because what it met there was not what
    it expected: it need not be the one that did wrong. `echo`: it only lost its peer. `left`: it
    ended with exit code 0.
    """
    parts = {standing.rank: part_of(facts, rung.cell, standing) for standing in ranks}
    if not any(part in ("origin", "mismatch", "echo") for part in parts.values()):
        return _launcher_group(facts, rung, ranks)
    origins = _of(ranks, parts, "origin")
    mismatches = _of(ranks, parts, "mismatch")
    first_origin = min((failed_at(standing) for standing in origins), default=_NEVER)
    first_mismatch = min((failed_at(standing) for standing in mismatches), default=_NEVER)
    if origins and (first_origin <= first_mismatch or not mismatches):
        return (_origin_group(rung, ranks, origins),)
    divergence = divergence_in(facts, rung.cell, [standing.rank for standing in ranks], hung=False)
    left = _of(ranks, parts, "left")
    # A rank that left with exit code 0 may have got through the very collective in which another
    # passed something else.
    if divergence is not None and not (left and divergence.kind == "call-site"):
        return (parted_group(rung, ranks, divergence),)
    if mismatches:
        return (_camps_group(rung, ranks),)
    if left:
        return (_left_group(rung, ranks, left),)
    return (_camps_group(rung, ranks),)


def part_of(facts: Facts, cell: str, standing: Standing) -> Part:
    """What the end of a rank was to the crash."""
    ending = standing.ending
    if standing.alive or ending is None or ending.by_us:
        return "alive"
    if ending.how == "exited" and ending.code == 0:
        return "left"
    if ending.by_launcher or (ending.echo and standing.exception is None):
        return "echo"
    exception = standing.exception
    if exception is not None and exception.echo:
        return "echo"
    if exception is not None:
        return "mismatch" if _met_another(facts, cell, standing) else "origin"
    if ending.signal == _SIGABRT and _aborted_in_collective(facts, cell, standing):
        return "mismatch"
    return "origin"


def failed_at(standing: Standing) -> float:
    """When it failed, Unix seconds; infinity where no time is known."""
    ending = standing.ending
    if ending is None:
        return _NEVER
    return next((moment for moment in (ending.failed_at, ending.at) if moment is not None), _NEVER)


def _of(ranks: Sequence[Standing], parts: dict[int, Part], part: Part) -> list[Standing]:
    return [standing for standing in ranks if parts[standing.rank] == part]


def _met_another(facts: Facts, cell: str, standing: Standing) -> bool:
    """An exception out of a collective that speaks of what a peer sent."""
    events = facts.of(LogEvent, cell=cell, rank=standing.rank)
    return _leaf_in_distributed(standing) and any(
        event.event in MISMATCH_EVENTS for event in events
    )


def _aborted_in_collective(facts: Facts, cell: str, standing: Standing) -> bool:
    fatal = facts.one(FatalSignal, cell=cell, rank=standing.rank)
    thread = standing.thread
    in_collective = standing.call is not None or (
        thread is not None and (thread.leaf in IN_COLLECTIVE or thread.in_backward)
    )
    events = facts.of(LogEvent, cell=cell, rank=standing.rank)
    return any(event.event in MISMATCH_EVENTS for event in events) or (
        fatal is not None and in_collective
    )


# Log events (signatures/) in which a rank says that it received something else than it expected.
MISMATCH_EVENTS = frozenset({"data-size-mismatch", "gloo-enforce", "collective-mismatch"})


def _leaf_in_distributed(standing: Standing) -> bool:
    exception = standing.exception
    if exception is None or not exception.frames:
        return False
    return any(
        "torch/distributed" in frame.file or frame.name.endswith("_engine_run_backward")
        for frame in exception.frames[-2:]
    )


def _origin_group(
    rung: Rung, ranks: Sequence[Standing], origins: Sequence[Standing]
) -> SuspectGroup:
    """The earliest origin, with all others that failed in the same way at the same place;
    `ranks` is empty where every rank did.
    """
    first = min(origins, key=lambda standing: (failed_at(standing), standing.rank))
    same = [standing for standing in origins if _failure(standing) == _failure(first)]
    everyone = len(same) == len(ranks) and len(ranks) > 1
    who = "all ranks" if everyone else ranks_say(sorted(standing.rank for standing in same))
    after = [
        standing.rank for standing in ranks if standing not in same and standing.state != "unseen"
    ]
    says = f"{who} {_failure_says(first)}" + (", before any other" if after else "")
    return _group(rung, ranks, [] if everyone else same, "failed-first", says, evidence_of=same)


def _failure(standing: Standing) -> tuple[object, ...]:
    if standing.exception is not None:
        return (
            "exception",
            standing.exception.root_type or standing.exception.type,
            standing.where,
        )
    ending = standing.ending
    return ("ending", ending.how, ending.code, ending.signal) if ending else ("unknown",)


def _failure_says(standing: Standing) -> str:
    place = f" at {standing.where}" if standing.where else ""
    if standing.exception is not None:
        return f"raised {standing.exception.root_type or standing.exception.type}{place}"
    ending = standing.ending
    if ending is None:
        return "ended"
    if ending.how == "oom_killed":
        return "was killed for want of memory"
    if ending.signal:
        return f"died of {ending.signal_name or f'signal {ending.signal}'}{place}"
    return f"ended with exit code {ending.code}"


def _left_group(rung: Rung, ranks: Sequence[Standing], left: Sequence[Standing]) -> SuspectGroup:
    who = ranks_say(sorted(standing.rank for standing in left))
    return _group(
        rung,
        ranks,
        left,
        "left",
        f"{who} ended with exit code 0 while the others still waited for it",
    )


def parted_group(rung: Rung, ranks: Sequence[Standing], divergence: Divergence) -> SuspectGroup:
    suspects = _minority(divergence.camps)
    members = [standing for standing in ranks if standing.rank in suspects]
    says = f"the ranks part at collective #{divergence.position}: {camps_say(divergence)}"
    chain = tuple(
        Link(
            ranks_say(camp),
            ranks_say(sorted({standing.rank for standing in ranks} - set(camp))),
            f"met {call}, with",
            divergence.evidence,
        )
        for camp, call in zip(divergence.camps, divergence.calls, strict=True)
        if len(camp) < len(ranks)
    )
    return _group(
        rung,
        ranks,
        members,
        "cycle",
        says,
        camps=divergence.camps,
        divergence=divergence,
        chain=chain,
    )


def _camps_group(rung: Rung, ranks: Sequence[Standing]) -> SuspectGroup:
    """No journal tells the calls: tell the ranks apart by where each of them was when it ended."""
    by_place: dict[str, list[int]] = defaultdict(list)
    for standing in ranks:
        by_place[place_of(standing)].append(standing.rank)
    if len(by_place) > 1:
        # ranks that the launcher ended before they could say where they were make no camp of their
        # own
        by_place.pop("", None)
    camps = tuple(
        sorted(
            (tuple(sorted(camp)) for camp in by_place.values()), key=lambda camp: (len(camp), camp)
        )
    )
    if len(camps) < 2:
        place = next(iter(by_place), "")
        says = (
            f"all ranks broke at the same place, {place}"
            if place
            else "the ranks broke, and none says where"
        )
        return _group(rung, ranks, [], "stuck-inside", says, evidence_of=ranks)
    suspects = _minority(camps)
    members = [standing for standing in ranks if standing.rank in suspects]
    parts = "; ".join(
        f"{ranks_say(camp)} at {place or 'an unknown place'}"
        for place, camp in sorted(by_place.items(), key=lambda item: len(item[1]))
    )
    return _group(
        rung, ranks, members, "cycle", f"the ranks broke at different places: {parts}", camps=camps
    )


def place_of(standing: Standing) -> str:
    """`all_reduce at train.py:28 in report`: the collective and the user's line in which a rank
    was last seen.
    """
    if standing.call is not None:
        call = standing.call
        return f"{call.op} at {call.file.rsplit('/', 1)[-1]}:{call.line} in {call.function}"
    if standing.thread is not None and standing.thread.op and standing.where:
        return f"{standing.thread.op} at {standing.where}"
    return standing.where


def _minority(camps: Sequence[tuple[int, ...]]) -> set[int]:
    return {rank for camp in camps if len(camp) == len(camps[0]) for rank in camp}


def _launcher_group(
    facts: Facts, rung: Rung, ranks: Sequence[Standing]
) -> tuple[SuspectGroup, ...]:
    """The launcher itself failed, and no rank did."""
    launchers = [
        fact
        for fact in facts.of(RankEnding, cell=rung.cell)
        if fact.role == "launcher" and fact.abnormal
    ]
    if not launchers:
        return ()
    code = launchers[0].code if launchers[0].code is not None else launchers[0].signal_name
    group = _group(
        rung,
        ranks,
        [],
        "failed-first",
        f"the launcher failed ({code}) and no rank did before it",
        evidence_of=ranks,
    )
    return (group,)


def _group(
    rung: Rung,
    ranks: Sequence[Standing],
    members: Sequence[Standing],
    how: SuspectHow,
    says: str,
    *,
    evidence_of: Sequence[Standing] = (),
    camps: tuple[tuple[int, ...], ...] = (),
    divergence: Divergence | None = None,
    chain: tuple[Link, ...] | None = None,
) -> SuspectGroup:
    suspects = tuple(sorted(standing.rank for standing in members))
    shown = evidence_of or members
    harmed = [
        standing
        for standing in ranks
        if standing.rank not in suspects and standing not in evidence_of
    ]
    victims = tuple(
        standing.rank for standing in harmed if standing.state != "unseen"
    )  # of a rank that nobody saw, nothing is known
    mode: Mode = "crash"
    if chain is None:
        chain = (
            (
                Link(
                    ranks_say(victims),
                    ranks_say(suspects),
                    "lost its peer" if len(victims) == 1 else "lost their peer",
                    _ids(members),
                ),
            )
            if victims and suspects
            else ()
        )
    return SuspectGroup(
        cell=rung.cell,
        probe=rung.probe,
        ranks=suspects,
        how=how,
        says=says,
        mode=mode,
        victims=victims,
        chain=chain,
        evidence=_ids(shown) or (divergence.evidence if divergence else ()),
        world_size=len(ranks),
        hosts=tuple(sorted({standing.host for standing in shown if standing.host})),
        camps=camps,
        divergence=divergence,
    )


def _ids(standings: Sequence[Standing]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_ for standing in standings for id_ in standing.evidence))
