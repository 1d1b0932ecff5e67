"""A job that goes on, but slowly, and who holds it back: only what samples over some seconds,
several looks seconds apart, or a wait of seconds, can show.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from trainprobe.facts import (
    AwaitedValue,
    Facts,
    Pressure,
    ProcessState,
    Rung,
    Samples,
    Thread,
)
from trainprobe.facts.processes import (
    QUEUED,
    crowd_themselves,
    queued_share,
    threads_that_want_to_run,
)
from trainprobe.facts.samples import (
    arrivals_in,
    asking_shares,
    by_host,
    late_host,
    latest_in,
    loading_share,
    longest_wait,
    most_at,
    spells_of,
    step_shares,
)
from trainprobe.stacks import compiling, loading
from trainprobe.stacks.arrivals import MUCH_CHANCE, MUCH_SHARE, Arrivals, too_long
from trainprobe.stacks.spells import share as share_of
from trainprobe.stacks.stillness import HUNG_S
from trainprobe.waits.activity import Watch
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.interpreter_rivals import interpreter_rival
from trainprobe.waits.lone_tasks import lone_task
from trainprobe.waits.slow_steps import slow_steps
from trainprobe.waits.standings import IN_COLLECTIVE, Standing
from trainprobe.waits.suspects import SuspectGroup

LOOKS = 3
SPAN_S = 3.0
MOST = 0.75
SHOWN = loading.MOST
MANY = 7
TIMES, USED_S = 3.0, 0.2
CROWDED = 2.0
STOOD_STILL = 0.3
OUTRUN = 0.25  # of the time: beside a reason that was measured
ALONE = 0.9  # of the time: the others' own work then falls between samples
ONE_WAIT = 0.5  # of the sampled time: a stretch as long may be one pause
WOKEN_SPANS, ROUND_S = 2, 2.5
LIVED_S = 60.0
LITTLE, MORE = 0.2, 2.0  # of a rank's life; and of the processor time that it took itself
YOUNG = 0.25  # of the rank's life
IDLE_S = 30.0  # a save or an evaluation of one rank may take less
LONG_ROUND_S = 1.0  # samples show enough of shorter ones
SAME_RANK = "whether the others wait for the same rank each time"
Waiters = Mapping[int, tuple[tuple[int, ...], float]]


def slow_groups(
    facts: Facts, rung: Rung, ranks: Sequence[Standing], watch: Watch, waiters: Waiters
) -> tuple[SuspectGroup, ...]:
    """The suspects of a live job in which everybody goes on; empty where nothing shows that it
    is slow. `waiters` are those that wait for each rank.
    """
    held_up = _compiling(rung, ranks, watch, waiters) or _kept_idle(rung, ranks, waiters)
    if held_up is not None:
        return (held_up,)
    samples = facts.of(Samples, cell=rung.cell)
    sampled = (
        _recompiling(facts, rung, ranks, watch)
        or _starved(rung, ranks, samples)
        or _starting_anew(rung, ranks, watch)
        or _asking(rung, ranks, samples)
        or _last(rung, ranks, samples)
        or _on_one_host(rung, ranks, samples)
        or _waited_for(rung, ranks, samples)
        or _outrun(rung, ranks, samples, watch)
        or _alone_again(facts, rung, ranks, samples)
    )
    alike = slow_steps(facts, rung.cell, [one.rank for one in ranks])
    if sampled is None and alike is not None:
        sampled = _group(rung, ranks, (), alike.says, (), samples)
    looks = _looks(facts, rung.cell)
    moments = [thread.at for threads in looks.values() for thread in threads if thread.at]
    often = len(looks) >= LOOKS and bool(moments) and max(moments) - min(moments) >= SPAN_S
    short = _short_of_cpu(facts, rung, ranks, often=often)
    loss = max(_sampled_loss(samples), alike.share if alike is not None else 0.0)
    if sampled is not None and short <= loss:
        return (sampled,)
    if short:
        says = "the job goes on, but gets less processor time than it asks for"
        return (_group(rung, ranks, (), says),)
    if not often:
        return ()
    # where samples show no lack of input, looks show a pause at most
    found = None if samples else _loading(rung, ranks, looks, _workers(facts, rung.cell))
    found = found or _straggler(rung, ranks, looks)
    return (found,) if found is not None else ()


def _sampled_loss(samples: Sequence[Samples]) -> float:
    """The larger share of the time that ranks wait for their latest one, for input or for a
    service.
    """
    waits = [arrivals_in(here).share for here in by_host(samples)]
    if (late := late_host(samples)) is not None:
        waits.append(late.waits - late.inside)
    waits.append(min(loading_share(samples).values(), default=0.0))
    waits.append(min((share for share, _ in asking_shares(samples).values()), default=0.0))
    return max(waits)


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


def _kept_idle(rung: Rung, ranks: Sequence[Standing], waiters: Waiters) -> SuspectGroup | None:
    """One rank works while all others have done nothing but wait for it, and for so long that it
    costs the job more than a pause: an evaluation or a save of one rank alone, or a loop that will
    take hours.
    """
    for standing in ranks:
        waiting, longest_s = waiters.get(standing.rank, ((), 0.0))
        if len(waiting) == len(ranks) - 1 > 0 and longest_s >= IDLE_S:
            where = f" at {standing.where}" if standing.where else ""
            says = (
                f"{ranks_say([standing.rank])} works alone{where}: the others have waited for it"
                f" for {longest_s:.0f} s"
            )
            return _group(rung, ranks, (standing.rank,), says, waiting)
    return None


def _recompiling(
    facts: Facts, rung: Rung, ranks: Sequence[Standing], watch: Watch
) -> SuspectGroup | None:
    """Ranks that compile for most of the sampled time, and for a function that has been compiled so
    often before that, at this length each, it must have taken much of the job's time. The first
    compilation may take as long as it likes, and so may a few more.
    """
    samples = [one for one in facts.of(Samples, cell=rung.cell) if one.role == "rank"]
    spells = spells_of(samples, compiling.compiles)
    share = {rank: share_of(rows) for rank, rows in spells.items()}
    most = tuple(rank for rank, part in sorted(share.items()) if part >= compiling.MOST)
    longest_s = max((compiling.longest_s(spells[rank]) for rank in most), default=0.0)
    for fact in facts.of(AwaitedValue, cell=rung.cell):
        process = watch.processes.get(fact.pid)
        if fact.name != compiling.REASON or not most or process is None or not process.age_s:
            continue
        count = compiling.done_before(fact.value.strip("'\""))
        if count is None or count < compiling.SEVERAL:
            continue
        if (count + 1) * longest_s < compiling.MUCH * process.age_s:
            continue
        all_of_them = 2 * len(most) >= len(ranks)
        says = (
            f"{ranks_say(most)} {'compiles' if len(most) == 1 else 'compile'} for"
            f" {max(share.values()):.0%} of the time: the same function was compiled"
            f" {count} times before"
        )
        others = tuple(one.rank for one in ranks if one.rank not in most)
        suspects, victims = ((), ()) if all_of_them else (most, others)
        return _group(rung, ranks, suspects, says, victims, samples)
    return None


def _starved(
    rung: Rung, ranks: Sequence[Standing], samples: Sequence[Samples]
) -> SuspectGroup | None:
    """All ranks spend most of the sampled time in their loaders, step after step: the first batch
    of all, or of an epoch, may take as long as it likes. Ranks go in step, and what they do between
    two batches may fall between samples: so one that shows the steps is enough.
    """
    share, steps = loading_share(samples), step_shares(samples)
    if set(share) != {one.rank for one in ranks} or min(share.values()) < SHOWN:
        return None
    anew = all(starts_workers_anew(one.process) for one in ranks)
    if max(steps.values()) < SHOWN and not anew:
        return None
    says = (
        f"all ranks spend at least {min(share.values()):.0%} of the time in their data loaders"
        if len(share) > 1
        else f"the rank spends {min(share.values()):.0%} of the time in its data loader"
    )
    if anew:
        ended_s = ended_workers_s([one.process for one in ranks])
        says += f", and workers that have ended took {ended_s:.0f} s of processor time on each rank"
    return _group(rung, ranks, (), says, (), samples)


def starts_workers_anew(process: ProcessState | None) -> bool:
    """Did a rank do little in its whole life beside waiting for children that have ended? Its
    workers start anew at each epoch, and an epoch is short.
    """
    if process is None or None in (process.age_s, process.used_s, process.ended_children_s):
        return False
    age_s, used_s = process.age_s or 0.0, process.used_s or 0.0
    ended_s = process.ended_children_s or 0.0
    return age_s >= LIVED_S and used_s <= LITTLE * age_s and ended_s >= MORE * used_s


def ended_workers_s(ranks: Sequence[ProcessState | None]) -> float:
    """Seconds of processor time that workers which have ended took on each of these ranks or more;
    0 where one of them was not read.
    """
    return min((one is not None and one.ended_children_s) or 0.0 for one in ranks)


def _starting_anew(rung: Rung, ranks: Sequence[Standing], watch: Watch) -> SuspectGroup | None:
    """All ranks are at workers that have just been started once more, as their lives tell: in an
    epoch as short no look need meet a step.
    """
    for one in ranks:
        process, loads = one.process, one.thread is not None and loading.loads(one.thread.frames)
        workers = watch.children(one.pid) if one.pid is not None else ()
        young = [
            worker.age_s is not None and worker.age_s <= YOUNG * (process.age_s or 0.0)
            for worker in workers
            if process is not None and worker.role == "loader-worker"
        ]
        if not (loads and young and all(young) and starts_workers_anew(process)):
            return None
    lives = [one.process for one in ranks if one.process is not None]
    ended_s = ended_workers_s(lives)
    says = (
        f"{'all ranks start' if len(ranks) > 1 else 'the rank starts'} loader workers again and"
        f" again: those that have ended took {ended_s:.0f} s of processor time on each rank, a rank"
        f" itself {max(one.used_s or 0.0 for one in lives):.0f} s of its"
        f" {min(one.age_s or 0.0 for one in lives):.0f} s"
    )
    return _group(rung, ranks, (), says)


def _asking(
    rung: Rung, ranks: Sequence[Standing], samples: Sequence[Samples]
) -> SuspectGroup | None:
    """All ranks spend most of the sampled time on calls to a service, step after step."""
    shares = asking_shares(samples)
    if set(shares) != {one.rank for one in ranks}:
        return None
    least = min(share for share, _ in shares.values())
    if least < SHOWN or max(steps for _, steps in shares.values()) < SHOWN:
        return None
    who = "all ranks spend" if len(ranks) > 1 else "the rank spends"
    says = f"{who} at least {least:.0%} of the time on calls to a service"
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
    last, rounds = seen.times_last
    says = (
        f"{ranks_say([rank])} comes last to {last} of {rounds} rounds of collectives, and the"
        f" others wait for it {seen.share:.0%} of the time"
        f"{f'; it is mostly at {where} meanwhile' if where else ''}"
    )
    others = tuple(one for one in seen.ranks if one != rank)
    return _group(rung, ranks, (rank,), says, others, samples)


def _on_one_host(
    rung: Rung, ranks: Sequence[Standing], samples: Sequence[Samples]
) -> SuspectGroup | None:
    """The ranks of one host seldom wait in collectives, those of all other hosts mostly."""
    late = late_host(samples)
    if late is None:
        return None
    where, _ = most_at(samples, late.ranks[0])
    says = (
        f"the ranks of the other hosts wait in collectives for at least {late.waits:.0%} of the"
        f" time, those of {late.host} for at most {late.inside:.0%}"
        f"{f'; {ranks_say(late.ranks[:1])} is mostly at {where} meanwhile' if where else ''}"
    )
    group = _group(rung, ranks, late.ranks, says, late.others, samples)
    return replace(group, hosts=(late.host,))


def _waited_for(
    rung: Rung, ranks: Sequence[Standing], samples: Sequence[Samples]
) -> SuspectGroup | None:
    """The others wait for one rank nearly all the time, in rounds of seconds: what they do
    themselves is too short for samples, but each of them wakes once or more for a round.

    A single pause shows none of it: in one the others sleep on, and samples see no break.
    """
    for here in by_host(samples):
        seen = arrivals_in(here)
        rank = seen.latest
        if rank is None or seen.share < ALONE or not _several_waits(seen, here):
            continue
        others = tuple(one for one in seen.ranks if one != rank)
        rounds = _rounds_slept([one for one in ranks if one.rank in others])
        if not rounds or len(seen.ranks) ** (1 - rounds) > MUCH_CHANCE:
            continue
        where, _ = most_at(here, rank)
        says = (
            f"the others wait for {ranks_say([rank])} {seen.share:.0%} of the time, in some"
            f" {rounds} rounds of collectives"
            f"{f'; it is mostly at {where} meanwhile' if where else ''}"
        )
        return _group(rung, ranks, (rank,), says, others, here)
    return None


def _outrun(
    rung: Rung, ranks: Sequence[Standing], samples: Sequence[Samples], watch: Watch
) -> SuspectGroup | None:
    """The others wait for one rank, and hardly for another, whose main thread hardly gets to run,
    since another thread of it takes the interpreter lock: however few the rounds, that is no pause.
    """
    for here in by_host(samples):
        seen = arrivals_in(here)
        rank = seen.latest
        if rank is None or seen.share < OUTRUN:
            continue
        if seen.held_s[rank] < MOST * sum(seen.held_s.values()):
            continue
        late = next((one for one in ranks if one.rank == rank), None)
        rival = interpreter_rival(watch, late.pid) if late is not None else None
        if rival is None:
            continue
        says = f"the others wait for {ranks_say([rank])} {seen.share:.0%} of the time: {rival.says}"
        others = tuple(one for one in seen.ranks if one != rank)
        return _group(rung, ranks, (rank,), says, others, here)
    return None


def _alone_again(
    facts: Facts, rung: Rung, ranks: Sequence[Standing], samples: Sequence[Samples]
) -> SuspectGroup | None:
    """One rank alone validates, saves or reports again and again: no pause, though rare."""
    task = lone_task(facts, rung.cell)
    if task is None:
        return None
    says = (
        f"the others wait for {ranks_say([task.rank])} {task.share:.0%} of the time: it works alone"
        f" at {task.place}, {task.times} times in {task.span_s:.0f} s"
    )
    return _group(rung, ranks, (task.rank,), says, task.others, samples)


def _several_waits(seen: Arrivals, samples: Sequence[Samples]) -> bool:
    """Did no other rank come last, and no single wait make up most of the time? Either samples show
    breaks, or all others woke in each of two spans or more.
    """
    rank = seen.latest
    if rank is None or seen.last.get(rank, 0) != seen.rounds:
        return False
    woke = [one for one in samples if one.rank != rank and one.spells and _longer(one)]
    spans = len(woke) / max(1, len(seen.ranks) - 1)
    return longest_wait(samples, rank) <= ONE_WAIT or (
        spans >= WOKEN_SPANS and all((one.woke or 0) > 0 for one in woke)
    )


def _longer(one: Samples) -> bool:
    """Is the span long enough for a round of some seconds to end in it?"""
    return one.spells[-1].end - one.spells[0].start >= ROUND_S


def _rounds_slept(waiting: Sequence[Standing]) -> int:
    """How many rounds the ranks that wait can have gone through between the looks: they woke as
    often at least, and there is room for no more sleeps as long as the longest. 0 where wakes are
    no measure of rounds, since some poll, or one sleep was far longer than the others.
    """
    found = []
    for one in waiting:
        process = one.process
        if process is None or not process.switches or process.looked_s is None:
            return 0
        each_s = process.looked_s / process.switches
        longest_s = process.asleep_s or 0.0
        if each_s < LONG_ROUND_S / 2 or longest_s < LONG_ROUND_S / 2 or longest_s > 4 * each_s:
            return 0
        found.append(min(process.switches, int(process.looked_s / longest_s)))
    return min(found, default=0)


@dataclass(frozen=True)
class Rare:
    """What too few rounds were seen of. `open`: it leaves open if the job is slow. `watch` is what
    more looks would tell. `group` holds the rank that may be late.
    """

    says: str
    watch: str
    open: bool
    group: SuspectGroup | None = None


def rarely_seen(rung: Rung, ranks: Sequence[Standing], samples: Sequence[Samples]) -> Rare | None:
    """One rank may be late, or all be short of input, but the rounds are too long to be sure."""
    share = loading_share(samples)
    if share and min(share.values()) >= SHOWN:
        says = (
            f"{'all ranks' if len(share) > 1 else 'the rank'} waited for input for at least"
            f" {min(share.values()):.0%} of the sampled time, which may be one pause or every step"
        )
        return Rare(says, "whether the wait for input goes on", open=True)
    for here in by_host(samples):
        seen = arrivals_in(here)
        if too_long(seen) and seen.latest is not None:
            says = (
                f"the others waited for {ranks_say([seen.latest])} alone for"
                f" {seen.share:.0%} of {seen.span_s:.0f} s, in too few rounds to say whether it is"
                " always the last"
            )
            most = seen.share >= MUCH_SHARE and _several_waits(seen, here)
            others = tuple(one for one in seen.ranks if one != seen.latest)
            late = _group(rung, ranks, (seen.latest,), says, others, here)
            return Rare(says, SAME_RANK, open=most, group=late)
    return None


def _short_of_cpu(facts: Facts, rung: Rung, ranks: Sequence[Standing], *, often: bool) -> float:
    """The share of the time that the ranks lose because the job's cgroup stands still for its
    quota, or because far more of its threads want to run than may; 0 where neither is so.

    Loader workers that start take nothing from a rank that waits for them: what counts is what the
    ranks' main threads lose. `often`: they were looked at often enough to see a burst pass.
    """
    wanting = threads_that_want_to_run(facts.of(ProcessState, cell=rung.cell))
    queued = queued_share(one.process for one in ranks)
    losses = [0.0]
    for fact in facts.of(Pressure):
        runnable = fact.runnable if wanting is None or queued is None or fact.host else wanting
        crowded = (
            runnable is not None
            and fact.usable_cpus
            and runnable > CROWDED * max(fact.usable_cpus, len(ranks))
        ) or crowd_themselves([one.process for one in ranks], fact.usable_cpus)
        long = often or (fact.looked_s or 0.0) >= SPAN_S
        if long and fact.throttled_share >= STOOD_STILL:
            losses.append(fact.throttled_share)
        if crowded and queued is not None and queued >= QUEUED:
            losses.append(queued)
        elif often and crowded and queued is None and fact.pressed:
            losses.append(QUEUED)
    return max(losses)


def _loading(
    rung: Rung,
    ranks: Sequence[Standing],
    looks: Mapping[int, Sequence[Thread]],
    workers: Sequence[Thread],
) -> SuspectGroup | None:
    """All ranks are at their loaders in most looks. Where the workers fetch in most looks too, a
    rank may be met elsewhere once more.

    Some batch must have come between the looks: the first of all may take as long as it likes, and
    is no measure of the others; and looks into one wait show one. A round wakes a rank twice at
    least, for its batch and for the others: who woke less often has not gone through several.
    """
    rounds = [_rounds_looked_at(one, len(looks)) for one in ranks]
    woke = [one.process.switches for one in ranks if one.process is not None]
    if not _batch_came(ranks) or median(rounds) < LOOKS:
        return None
    if min((count for count in woke if count is not None), default=2 * LOOKS) < 2 * LOOKS:
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
    rounds = [_rounds_looked_at(one, len(looks)) for one in ranks if one.rank not in late]
    if not works and min(rounds, default=0) < MANY:
        return None
    early = tuple(rank for rank, share in inside.items() if share >= (SHOWN if works else MOST))
    # Who sleeps through looks waits for one long piece of work, such as an evaluation or a garbage
    # collection: that is no lag, and such looks show one round together.
    passing = all(
        (standing.since_s or 0.0) < SPAN_S and _rounds_looked_at(standing, len(looks)) >= LOOKS
        for standing in ranks
        if standing.rank in early
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


def _rounds_looked_at(standing: Standing, looks: int) -> int:
    return looks - (standing.process.slept_through if standing.process is not None else 0)


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
