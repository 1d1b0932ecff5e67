"""One rank or node is steadily slower, and all others wait for it in each step.

A GPU whose clocks are held down, a node with a busy neighbour, a rank that gets longer samples or
does more work: every step ends when the slowest rank comes to its collective.

It is recognised by a job that moves, in which the same rank works in its own code in every look, or
comes last in nearly all rounds of collectives that samples show, while the others wait for it. A
thread of that rank that takes the interpreter lock from its main thread says why. Another rank each
time, or one that stands still, rules it out.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import goes_on, goes_round, longest_sleep
from trainprobe.causes.phrases import Fixes, fix, fixes, native_stack, ranks_say, subject, verb
from trainprobe.causes.remote_calls import late_by_calls
from trainprobe.causes.scene import WAITS_FOR_RANKS, Scene, Weighings, weighing
from trainprobe.causes.statements import quote
from trainprobe.facts import Gpu, LogJob, LogProgress, Samples, Thread
from trainprobe.facts.samples import LateHost, late_host, latest_in, loading_share, most_at
from trainprobe.model.ranks import and_list
from trainprobe.stacks.arrivals import MUCH_CHANCE, Arrivals, by_chance
from trainprobe.stacks.loading import loads
from trainprobe.stacks.places import outside_torch, user_frame
from trainprobe.waits.interpreter_rivals import Rival, interpreter_rival
from trainprobe.waits.lone_tasks import lone_task
from trainprobe.waits.slowness import IDLE_S

ENOUGH_LOOKS = (
    3  # with two, one rank is outside a collective in both by chance in a tenth of balanced jobs
)
WAITING = WAITS_FOR_RANKS
SLOWER = 1.2  # times the median of the ranks
LEAST_STEPS = 10
LOADS = 0.3  # of its time in the loader: its data are what it waits for
SURE = 0.001  # chance explains the order of arrival no better


def _outside(looks: tuple[Thread, ...]) -> int:
    return sum(bool(look.leaf) and look.leaf not in WAITING for look in looks)


def _late(scene: Scene) -> tuple[int, ...]:
    """Ranks that work outside collectives in every look while the others mostly wait."""
    looks = {rank: scene.looks(rank) for rank in scene.world}
    always = tuple(
        rank for rank, found in looks.items() if len(found) >= 2 and _outside(found) == len(found)
    )
    others = [rank for rank in scene.world if rank not in always and looks[rank]]
    waiting = all(2 * _outside(looks[rank]) < len(looks[rank]) for rank in others)
    return always if others and waiting and 2 * len(always) <= len(scene.world) else ()


def _weigh(scene: Scene) -> Weighings:
    yield from _from_log(scene)
    if (rival := _rival(scene)) is not None:
        says = f"{rival.says[:1].upper()}{rival.says[1:]}"
        yield weighing(13, "process-state-and-locks", says, rival.thread)
        if _sampled(scene) is None:
            rest = [one for one in scene.of(Samples) if one.rank not in scene.ranks]
            yield weighing(10, "other-stacks", "The others wait mostly for it", *rest)
            return
    if scene.group.mode == "slow" and (sampled := _sampled(scene)) is not None:
        yield from _from_samples(scene, sampled)
        return
    if scene.group.mode == "slow" and (host := _of_host(scene)) is not None:
        says = (
            f"{ranks_say(host.others)} {verb(host.others, 'waits', 'wait')} in collectives for at"
            f" least {host.waits:.0%} of the time, {ranks_say(host.ranks, capital=False)} on"
            f" {host.host} for at most {host.inside:.0%}"
        )
        yield weighing(26, "suspects-stack", says, *scene.of(Samples))
        return
    if scene.group.mode == "slow" and lone_task(scene.facts, scene.cell):
        says = "What it is late with is a task of its own, and not its step"
        yield weighing(-13, "suspects-stack", says, *scene.of(Samples))
        return
    late = _late(scene)
    # where the job as a whole lacks something, somebody is last by chance
    if not late or not scene.ranks:
        return
    threads, number = scene.threads(late), min(len(scene.looks(rank)) for rank in late)
    says = (
        f"{ranks_say(late)} {verb(late, 'works', 'work')} outside collectives in all {number}"
        f" looks, such as at {threads[0].where}"
    )
    yield weighing(13 if number >= ENOUGH_LOOKS else 6, "suspects-stack", says, *threads)
    if scene.of(Samples):  # those of one that is steadily late would have told so
        says = "Samples show too few rounds to say whether it is always the last"
        yield weighing(-10, "suspects-stack", says, *scene.of(Samples, rank=late[0]))
    others = [rank for rank in scene.world if rank not in late]
    says = f"{ranks_say(others)} {verb(others, 'waits', 'wait')} in collectives in most looks"
    yield weighing(10, "other-stacks", says, *scene.threads(others))
    if (slept_s := longest_sleep(scene, others)) >= IDLE_S:
        says = f"They have waited {slept_s:.0f} s in one call: that is no step"
        yield weighing(-26, "other-stacks", says, *scene.threads(others))
    going = [thread for thread in threads if thread.moved or goes_on(scene.process_of(thread.pid))]
    stuck = [
        thread
        for thread in threads
        if thread.moved is False and not goes_on(scene.process_of(thread.pid))
    ]
    # who is met in network calls alone waits for a service: that it goes on is the service's work
    asks = all(look.leaf == "net-io" for rank in late for look in scene.looks(rank))
    if going and not asks and not (going[0].rank is not None and goes_round(scene, going[0].rank)):
        says = f"It goes on: {goes_on(scene.process_of(going[0].pid)) or 'its place changes'}"
        yield weighing(6, "process-state-and-locks", says, *going)
    elif stuck and scene.group.mode == "hang":
        says = f"{ranks_say([stuck[0].rank or 0])} does not go on at all"
        yield weighing(-26, "process-state-and-locks", says, *stuck)


def _rival(scene: Scene) -> Rival | None:
    """The thread of the one suspect that takes the interpreter lock from its main thread."""
    process = scene.process(scene.ranks[0]) if len(scene.ranks) == 1 else None
    if scene.group.mode != "slow" or scene.live is None or process is None:
        return None
    return interpreter_rival(scene.watch, process.pid)


def _sampled(scene: Scene) -> Arrivals | None:
    """The samples in which the suspect is steadily last; None without such samples."""
    seen = latest_in(scene.of(Samples))
    return seen if seen is not None and scene.ranks == (seen.latest,) else None


def _of_host(scene: Scene) -> LateHost | None:
    """The host for whose ranks, the suspects, those of all others wait."""
    found = late_host(scene.of(Samples))
    return found if found is not None and found.ranks == scene.ranks else None


def _from_samples(scene: Scene, seen: Arrivals) -> Weighings:
    rank = seen.latest or 0
    mine = scene.of(Samples, rank=rank)
    last, rounds = seen.times_last
    says = (
        f"Rank {rank} comes last to {last} of {rounds} rounds of collectives in {seen.span_s:.0f} s"
    )
    chance = by_chance(seen)
    points = 26 if chance <= SURE else 13 if chance <= MUCH_CHANCE else 6
    yield weighing(points, "suspects-stack", says, *mine)
    others = [other for other in seen.ranks if other != rank]
    says = (
        f"{ranks_say(others)} {verb(others, 'waits', 'wait')} for it {seen.share:.0%} of the time"
    )
    rest = [one for one in scene.of(Samples) if one.rank in others]
    yield weighing(10, "other-stacks", says, *rest)
    if (share := late_by_calls(scene, rank)) is not None:
        says = f"{share:.0%} of its own time goes to network calls: a service is slow, not the rank"
        yield weighing(-10, "suspects-stack", says, *mine)


def _from_log(scene: Scene) -> Weighings:
    """A detector's report, or one rank whose steps lag behind those of all others."""
    printed = scene.one(LogJob) and next(iter(scene.events("straggler-told")), None)
    if printed:
        yield quote(26, "A detector says so", printed)
    rates = _rates(scene)
    slow = max(rates, default=None, key=lambda rank: rates[rank])
    if (
        slow is not None
        and len(rates) > 2
        and rates[slow] >= SLOWER * sorted(rates.values())[len(rates) // 2]
    ):
        middle = sorted(rates.values())[len(rates) // 2]
        says = f"Rank {slow} takes {rates[slow]:.2f} s for a step, the middle one {middle:.2f} s"
        yield weighing(13, "probe-outcome", says, *_bars(scene))


def _bars(scene: Scene) -> tuple[LogProgress, ...]:
    return tuple(bar for bar in scene.of(LogProgress) if bar.rank is not None)


def _rates(scene: Scene) -> dict[int, float]:
    """Seconds a step by rank, where a rank printed at least ten of them with their times."""
    found = {}
    for bar in _bars(scene):
        steps = (bar.step or 0) - (bar.first_step or 0)
        spent = (bar.at or 0.0) - (bar.first_at or 0.0)
        if steps >= LEAST_STEPS and spent > 0 and bar.rank is not None:
            found[bar.rank] = spent / steps
    return found


def _ranks(scene: Scene) -> tuple[int, ...]:
    rates = _rates(scene)
    return (
        (scene.ranks if _sampled(scene) is not None or _of_host(scene) is not None else ())
        or _late(scene)
        or scene.ranks
        or ((max(rates, key=lambda rank: rates[rank]),) if rates else ())
    )


def _places(scene: Scene) -> list[str]:
    if (seen := _sampled(scene)) is not None:
        return [place for place in (most_at(scene.of(Samples), seen.latest or 0)[0],) if place]
    if (host := _of_host(scene)) is not None:
        places = (most_at(scene.of(Samples), rank)[0] for rank in host.ranks)
        return [place for place in dict.fromkeys(places) if place]
    found = [
        look.frames[-1].where for rank in _late(scene) for look in scene.looks(rank) if look.frames
    ]
    return sorted(set(found), key=lambda place: (-found.count(place), place))


def _summary(scene: Scene) -> str:
    late = _ranks(scene)
    if (reported := next(_from_log(scene), None)) is not None:
        return (
            f"{subject(scene, late)} {verb(late, 'is', 'are')} steadily slower than the others."
            f" {reported.says}"
        )
    if (seen := _sampled(scene)) is not None:
        place, share = most_at(scene.of(Samples), seen.latest or 0)
        at = f" Of its own time it spends {share:.0%} at {place}." if place else ""
        return (
            f"{subject(scene, late)} {verb(late, 'is', 'are')} the last to come to"
            f" {seen.times_last[0]} of {seen.times_last[1]} rounds of collectives, and the"
            f" others wait for it {seen.share:.0%} of the time.{at}"
        )
    if (host := _of_host(scene)) is not None:
        places = and_list(_places(scene)[:2])
        at = f"; of {'its' if len(late) == 1 else 'their'} own time most goes to {places}"
        return (
            f"{subject(scene, late)} {verb(late, 'is', 'are')} slower than the ranks of all other"
            f" hosts, which wait in collectives for at least {host.waits:.0%} of the time"
            f"{at if places else ''}"
        )
    if (rival := _rival(scene)) is not None:
        return (
            f"{subject(scene, late)} {verb(late, 'is', 'are')} slower than the others: {rival.says}"
        )
    threads = scene.threads(late)
    where = f" at {threads[0].where}" if threads and threads[0].where else ""
    return (
        f"{subject(scene, late)} {verb(late, 'is', 'are')} the last to come to each collective: in"
        f" every look it still works{where}"
    )


def _fixes(scene: Scene) -> Fixes:
    late = _ranks(scene)
    threads = scene.threads(late)
    pid = threads[0].pid if threads else 0
    gpu = ("nvidia-smi -q -d CLOCK,PERFORMANCE,PCIE",) if scene.of(Gpu) else ()
    places = and_list(_places(scene)[:2])
    see = fix(
        "See what it does meanwhile",
        *native_stack(scene, ranks_say(late, capital=False), pid),
        *((f"most looks are at {places}",) if places else ()),
    )
    if lock := _for_its_lock(scene):
        return (*lock, see)
    elsewhere = "of another node" if len(scene.group.hosts) > 1 else "beside it"
    return (
        *(_for_its_line(scene) or (see,)),
        fix(
            f"Compare it with a rank {elsewhere}",
            f"top -H -b -n 1 -p {pid or '<PID>'}",
            f"chrt -p {pid or '<PID>'}; taskset -cp {pid or '<PID>'}",
            *gpu,
        ),
        *_for_its_data(scene),
        fix(
            "Give all ranks the same work",
            "sort or bucket samples by length; do logging and saving in turns or in the background",
        ),
    )


def _for_its_lock(scene: Scene) -> Fixes:
    rival = _rival(scene)
    if rival is None:
        return ()
    return (
        fix(
            "Let that thread sleep while it has nothing to do",
            f"{rival.where}: a loop that asks whether something has come takes the interpreter lock"
            " each time; wait in queue.get(timeout=1) or event.wait(1) instead",
            "if it has that much to do, do it in a process of its own",
        ),
    )


def _for_its_line(scene: Scene) -> Fixes:
    """Where the late rank is in its own code, and not in torch or its loader, in most looks."""
    late = scene.threads(_ranks(scene))
    looks = [look.frames for thread in late for look in scene.looks(thread.rank or 0)]
    own = [frames for frames in looks if outside_torch(frames) and not loads(frames)]
    places = [frame.where for frames in own if (frame := user_frame(frames)) is not None]
    if not places or 2 * len(own) <= len(looks) or _for_its_data(scene):
        return ()
    return fixes(LINE, place=max(places, key=places.count), pid=late[0].pid)


LINE = """
Take it out of the step, or make it cheaper
    {place}: do it less often, in the background, or on all ranks in turns
    py-spy record -d 20 -o late.svg --pid {pid}   (what below that line takes the time?)
"""


def _for_its_data(scene: Scene) -> Fixes:
    late = _ranks(scene)
    share = loading_share(scene.of(Samples))
    if not late or share.get(late[0], 0.0) < LOADS:
        return ()
    return (
        fix(
            f"Feed rank {late[0]} as fast as the others: it spends {share[late[0]]:.0%} of the time"
            " in its data loader",
            "compare its shard with those of the others: size of samples, storage, cache",
            "more workers that prepare ahead: DataLoader(..., num_workers=4, prefetch_factor=4)",
        ),
    )


CAUSE = Cause(
    id="straggler-rank",
    title="One rank is steadily slower than the others",
    modes=("slow",),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle="trainprobe attach --watch 5: is it the same rank in each look?",
    accounts_for=("rank-stuck", "rank0-long-task"),
)
