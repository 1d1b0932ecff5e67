"""The same exception is seen by the witness, in an error file and in the output: make one of it,
and give it its rank.
"""

from __future__ import annotations

from dataclasses import replace

from trainprobe.facts.endings import RankEnding
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.progress import Progress
from trainprobe.model.facts import Fact

TRUST = {"witness": 0, "error-file": 1, "output": 2}


def join_exceptions(facts: list[Fact]) -> list[Fact]:
    """One RankException per exception; a traceback that did not end its process is marked
    `handled`.
    """
    found = [fact for fact in facts if isinstance(fact, RankException)]
    raw, of_probes = (
        [fact for fact in found if fact.source != "probe"],
        [fact for fact in found if fact.source == "probe"],
    )
    endings = [fact for fact in facts if isinstance(fact, RankEnding) and fact.role == "rank"]
    watched = {
        (fact.cell, fact.rank)
        for fact in facts
        if isinstance(fact, Progress) and fact.witness and fact.exit_at is not None
    }
    attributed = _attributed(
        [fact for fact in raw if fact.role == "rank" or fact.source == "output"], raw, endings
    )
    merged: list[RankException] = []
    for fact in sorted(attributed, key=lambda one: TRUST.get(one.source, 3)):
        place = next((at for at, other in enumerate(merged) if _same(fact, other)), None)
        if place is None:
            merged.append(fact)
        else:
            merged[place] = _both(merged[place], fact)
    by_rank = {(ending.cell, ending.rank): ending for ending in endings}
    told = {
        (fact.cell, fact.rank)
        for fact in merged
        if fact.source == "witness" and fact.thread == "MainThread"
    }
    done = [_weighed(fact, by_rank, watched, told) for fact in merged]
    return [fact for fact in facts if not isinstance(fact, RankException)] + done + of_probes


def _same(one: RankException, other: RankException) -> bool:
    if one.cell != other.cell or one.rank != other.rank:
        return False
    names = {one.type.rsplit(".", 1)[-1], one.root_type.rsplit(".", 1)[-1]} & {
        other.type.rsplit(".", 1)[-1],
        other.root_type.rsplit(".", 1)[-1],
    }
    return bool(names - {""}) and (
        _begin(one.message) == _begin(other.message)
        or _begin(one.root_message) == _begin(other.message)
        or _begin(one.message) == _begin(other.root_message)
    )


def _begin(message: str) -> str:
    return " ".join(message.split())[:60]


def _both(better: RankException, other: RankException) -> RankException:
    """Keep what the better source says, with the chain that only a printed traceback shows."""
    chained = other if other.root_type and not better.root_type else better
    return replace(
        better,
        evidence=tuple(dict.fromkeys(better.evidence + other.evidence)),
        at=better.at if better.at is not None else other.at,
        root_type=chained.root_type,
        root_message=chained.root_message,
        frames=(chained.frames if chained.root_type and chained.frames else better.frames)
        or other.frames,
        worker=better.worker if better.worker is not None else other.worker,
        module_importing=better.module_importing or other.module_importing,
        echo=chained.echo,
        echo_of=chained.echo_of,
        type=chained.type,
        message=chained.message,
        handled=better.handled and other.handled,
        pid=better.pid if better.pid is not None else other.pid,
    )


def _attributed(
    raw: list[RankException], all_raw: list[RankException], endings: list[RankEnding]
) -> list[RankException]:
    """A traceback without prefix in a launcher's output: it is the one of a rank that says the
    same, or of the only rank left that failed.
    """
    done: list[RankException] = []
    for fact in raw:
        if fact.rank is not None or fact.source != "output" or fact.echo_of == "launcher":
            done.append(fact)
            continue
        twins = {
            other.rank
            for other in all_raw
            if other.rank is not None and _same(replace(fact, rank=other.rank), other)
        }
        spoken = {
            other.rank
            for other in all_raw
            if other.rank is not None and other.cell == fact.cell and not other.handled
        }
        failed = {
            ending.rank
            for ending in endings
            if ending.cell == fact.cell and ending.how == "exited" and ending.code not in (0, None)
        }
        candidates = twins or (failed - spoken)
        done.append(
            replace(fact, rank=candidates.pop(), role="rank") if len(candidates) == 1 else fact
        )
    return done


def _weighed(
    fact: RankException,
    endings: dict[tuple[str, int | None], RankEnding],
    watched: set[tuple[str, int | None]],
    told: set[tuple[str, int | None]],
) -> RankException:
    """Not deadly: printed by a rank that ended well, or one that the witness, which saw the end,
    does not know of.
    """
    ending = endings.get((fact.cell, fact.rank))
    ended_well = ending is not None and ending.how == "exited" and ending.code == 0
    unseen = fact.source == "output" and (
        (fact.cell, fact.rank) in watched or (fact.cell, fact.rank) in told
    )
    other_thread = fact.thread not in ("", "MainThread")
    return replace(fact, handled=fact.handled or ended_well or unseen or other_thread)
