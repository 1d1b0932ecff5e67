"""A job that goes on, but slowly, and who holds it back: only what samples over some seconds,
several looks seconds apart, or a wait of seconds, can show.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from trainprobe.facts import Facts, Pressure, Rung, Samples, Thread
from trainprobe.facts.samples import (
    arrivals_in,
    by_host,
    latest_in,
    loading_share,
    most_at,
)
from trainprobe.stacks.arrivals import too_long
from trainprobe.stacks.stillness import HUNG_S
from trainprobe.waits.activity import Watch
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.standings import IN_COLLECTIVE, Standing
from trainprobe.waits.suspects import SuspectGroup

LOOKS = 3
SPAN_S = 3.0
MOST = 0.75
SHOWN = 0.6
MANY = 7
TIMES, USED_S = 3.0, 0.2
CROWDED = 2.0
Waiters = Mapping[int, tuple[tuple[int, ...], float]]


def slow_groups(
    facts: Facts, rung: Rung, ranks: Sequence[Standing], watch: Watch, waiters: Waiters
) -> tuple[SuspectGroup, ...]:
    """The suspects of a live job in which everybody goes on; empty where nothing shows that it
    is slow. `waiters` are those that wait for each rank.
    """
    compiling = _compiling(rung, ranks, watch, waiters)
    if compiling is not None:
        return (compiling,)
    samples = facts.of(Samples, cell=rung.cell)
    sampled = _starved(rung, ranks, samples) or _last(rung, ranks, samples)
    if sampled is not None:
        return (sampled,)
    looks = _looks(facts, rung.cell)
    moments = [thread.at for threads in looks.values() for thread in threads if thread.at]
    if len(looks) < LOOKS or not moments or max(moments) - min(moments) < SPAN_S:
        return ()
    found = (
        _throttled(facts, rung, ranks)
        or _loading(rung, ranks, looks, _workers(facts, rung.cell))
        or _straggler(rung, ranks, looks)
    )
    return (found,) if found is not None else ()


def _compiling(
    rung: Rung, ranks: Sequence[Standing], watch: Watch, waiters: Waiters
) -> SuspectGroup | None:
    """One rank compiles while all others have waited for it for seconds: the first compilation
    of a job is everybody's.
    """
    for standing in ranks:
        waiting, longest_s = waiters.get(standing.rank, ((), 0.0))
        children = watch.children(standing.pid) if standing.pid is not None else ()
        compiles = standing.leaf == "compile" or any(
            child.role == "compiler" and watch.activity(child.pid).goes_on for child in children
        )
        if compiles and len(waiting) == len(ranks) - 1 > 0 and longest_s >= HUNG_S:
            return _group(
                rung,
                ranks,
                (standing.rank,),
                f"{ranks_say([standing.rank])} compiles at {standing.where} while the others wait",
                waiting,
            )
    return None


def _starved(
    rung: Rung, ranks: Sequence[Standing], samples: Sequence[Samples]
) -> SuspectGroup | None:
    """All ranks spend most of the sampled time in their loaders, and batches came meanwhile: the
    first of all may take as long as it likes.
    """
    share = loading_share(samples)
    got_one = any(
        spell.loads and not after.loads
        for one in samples
        for spell, after in zip(one.spells, one.spells[1:], strict=False)
    )
    if (
        not (got_one or _batch_came(ranks))
        or set(share) != {one.rank for one in ranks}
        or min(share.values()) < SHOWN
    ):
        return None
    says = (
        f"all ranks spend {min(share.values()):.0%} of the time or more in their data loaders"
        if len(share) > 1
        else f"the rank spends {min(share.values()):.0%} of the time in its data loader"
    )
    return _group(rung, ranks, (), says, (), samples)


def _batch_came(ranks: Sequence[Standing]) -> bool:
    """Between the looks: whoever gets one asks a worker for the next."""
    return any(
        standing.moved or (standing.process is not None and standing.process.wrote_bytes != 0)
        for standing in ranks
    )


def _last(rung: Rung, ranks: Sequence[Standing], samples: Sequence[Samples]) -> SuspectGroup | None:
    """One rank comes last to the collectives in nearly all rounds, and the others wait for it for
    much of the time.
    """
    seen = latest_in(samples)
    if seen is None or seen.latest is None:
        return None
    rank = seen.latest
    where, _ = most_at(samples, rank)
    says = (
        f"{ranks_say([rank])} comes last to {seen.last[rank]} of {seen.rounds} rounds of"
        f" collectives, and the others wait for it {seen.share:.0%} of the time"
        f"{f'; it is mostly at {where} meanwhile' if where else ''}"
    )
    others = tuple(one for one in seen.ranks if one != rank)
    return _group(rung, ranks, (rank,), says, others, samples)


def rarely_seen(samples: Sequence[Samples]) -> str:
    """What to say where one rank may be late but the rounds are too long to be sure; "" where none
    is.
    """
    for here in by_host(samples):
        seen = arrivals_in(here)
        if too_long(seen) and seen.latest is not None:
            return (
                f"the others waited for {ranks_say([seen.latest])} alone for"
                f" {seen.share:.0%} of {seen.span_s:.0f} s, in too few rounds to say whether it is"
                " always the last"
            )
    return ""


def _throttled(facts: Facts, rung: Rung, ranks: Sequence[Standing]) -> SuspectGroup | None:
    for fact in facts.of(Pressure):
        crowded = (
            fact.runnable is not None
            and fact.usable_cpus
            and fact.runnable > CROWDED * fact.usable_cpus * max(1.0, len(ranks) / fact.usable_cpus)
        )
        if (fact.scope == "cgroup" and fact.throttled) or crowded:
            return _group(
                rung, ranks, (), "the job goes on, but gets less processor time than it asks for"
            )
    return None


def _loading(
    rung: Rung,
    ranks: Sequence[Standing],
    looks: Mapping[int, Sequence[Thread]],
    workers: Sequence[Thread],
) -> SuspectGroup | None:
    """All ranks are at their loaders in most looks. Where the workers fetch in most looks too, a
    rank may be met elsewhere once more.

    Some batch must have come between the looks: the first of all may take as long as it likes, and
    is no measure of the others.
    """
    if not _batch_came(ranks):
        return None
    threads = [thread for row in looks.values() for thread in row]
    loading = [
        thread
        for thread in threads
        if thread.leaf == "dataloader"
        or any(frame.base == "fetch.py" for frame in thread.frames[-6:])
    ]
    share = {
        standing.rank: sum(1 for thread in loading if thread.rank == standing.rank) / len(looks)
        for standing in ranks
    }
    fetching = [any(frame.base == "fetch.py" for frame in thread.frames) for thread in workers]
    fed_late = (
        bool(fetching)
        and sum(fetching) / len(fetching) >= MOST
        and sum(share.values()) / len(share) >= MOST
    )
    if all(value >= (SHOWN if fed_late else MOST) for value in share.values()):
        return _group(rung, ranks, (), "all ranks wait for their data loaders in most looks")
    return None


def _straggler(
    rung: Rung, ranks: Sequence[Standing], looks: Mapping[int, Sequence[Thread]]
) -> SuspectGroup | None:
    """One rank that is outside of the collective in most looks while all others are inside it,
    and yet all move.
    """
    inside = {
        standing.rank: (
            sum(
                1
                for row in looks.values()
                for thread in row
                if thread.rank == standing.rank and thread.leaf in IN_COLLECTIVE
            )
            / len(looks)
        )
        for standing in ranks
    }
    late = [rank for rank, share in inside.items() if share <= 1 - MOST]
    # In three looks at a job whose steps differ at random one rank of two is last in all of them
    # one time in four: the processor's time must say the same, or the looks must be many. Where it
    # does say so, one look may meet a rank between two collectives.
    works = len(late) == 1 and _works_more(ranks, late[0])
    if not works and len(looks) < MANY:
        return None
    early = tuple(rank for rank, share in inside.items() if share >= (SHOWN if works else MOST))
    # Who has slept through all looks waits for one long piece of work, such as an evaluation: that
    # is no lag.
    passing = all(
        (standing.since_s or 0.0) < SPAN_S for standing in ranks if standing.rank in early
    )
    if passing and len(late) == 1 and len(early) == len(ranks) - 1 > 0:
        where = next((standing.where for standing in ranks if standing.rank == late[0]), "")
        return _group(
            rung,
            ranks,
            (late[0],),
            f"{ranks_say(late)} is last in most looks{f', at {where}' if where else ''}, and the"
            " others wait for it",
            early,
        )
    return None


def _works_more(ranks: Sequence[Standing], rank: int) -> bool:
    """Did this rank's main thread use several times as much processor time between the looks as
    any other's?
    """
    used = {
        standing.rank: standing.process.cpu_s
        for standing in ranks
        if standing.process is not None and standing.process.cpu_s is not None
    }
    others = [seconds for other, seconds in used.items() if other != rank]
    return len(used) == len(ranks) > 1 and used[rank] >= max(USED_S, TIMES * max(others))


def _looks(facts: Facts, cell: str) -> dict[int, list[Thread]]:
    found: dict[int, list[Thread]] = defaultdict(list)
    for thread in facts.of(Thread, cell=cell):
        if thread.main and thread.role == "rank" and not thread.native and thread.rank is not None:
            found[thread.look].append(thread)
    return dict(found)


def _workers(facts: Facts, cell: str) -> list[Thread]:
    return [
        thread
        for thread in facts.of(Thread, cell=cell)
        if thread.main and thread.role == "loader-worker" and not thread.native and thread.frames
    ]


def _group(
    rung: Rung,
    ranks: Sequence[Standing],
    suspects: tuple[int, ...],
    says: str,
    victims: tuple[int, ...] = (),
    samples: Sequence[Samples] = (),
) -> SuspectGroup:
    return SuspectGroup(
        cell=rung.cell,
        probe=rung.probe,
        ranks=suspects,
        how="slow",
        says=says,
        mode="slow",
        victims=victims,
        evidence=tuple(
            dict.fromkeys(
                id_
                for rank, ids in (
                    *((one.rank, one.evidence) for one in ranks),
                    *((one.rank, one.evidence) for one in samples),
                )
                if not suspects or rank in suspects
                for id_ in ids
            )
        ),
        world_size=len(ranks),
        hosts=tuple(sorted({standing.host for standing in ranks if standing.host})),
    )
