"""The ranks spend most of each step waiting for input; the job moves, but slowly.

Too few loader workers, samples that cost much to decode, storage that answers slowly: the main
threads stand in the data loader in most looks, and the GPUs idle.

It is recognised by main threads of most ranks in the data loader while workers compute or read and
move on between looks, or by workers that start anew for every short epoch. Workers that stand
still rule it out: that is a hang of a worker. Workers that are all idle do too.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.child_processes import IDLE, goes_on
from trainprobe.causes.locks_wanted import asked_inside_a_call
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, verb
from trainprobe.causes.remote_calls import connections
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.slow_lines import SlowLine, slow_line
from trainprobe.facts import Gpu, MainThread, ProcessState, Samples, Thread
from trainprobe.facts.samples import latest_in, loading_share, own_line
from trainprobe.model.ranks import and_list
from trainprobe.waits.slowness import ended_workers_s, starts_workers_anew

MOST = 0.6  # of all looks at main threads
HALF = 0.5  # of the sampled time
FETCHES = "torch/utils/data/_utils/fetch.py"
LOADS = "torch/utils/data/dataloader.py"


def _in_loader(looks: tuple[Thread, ...]) -> int:
    return sum(
        any(LOADS in frame.file or FETCHES in frame.file for frame in look.frames) for look in looks
    )


def _starved(scene: Scene) -> tuple[tuple[int, ...], float]:
    """Ranks whose main thread is mostly in the loader, and their share of all looks or, where the
    ranks were sampled, of the time.
    """
    sampled = loading_share(scene.of(Samples))
    if sampled:
        most = tuple(rank for rank, share in sampled.items() if share >= MOST)
        return most, sum(sampled.values()) / len(sampled)
    looks = {rank: scene.looks(rank) for rank in scene.world}
    total = sum(len(found) for found in looks.values())
    ranks = tuple(
        rank for rank, found in looks.items() if found and _in_loader(found) >= MOST * len(found)
    )
    return ranks, sum(_in_loader(found) for found in looks.values()) / total if total else 0.0


def _made_in_the_steps(scene: Scene) -> SlowLine | None:
    """The line of the program's own at which all ranks make their input, outside of any loader."""
    line = slow_line(scene) if not _starved(scene)[0] else None
    if line is None or not line.makes_input or line.asks or asked_inside_a_call(scene):
        return None
    return line


def _of(scene: Scene) -> str:
    return "the time" if scene.of(Samples) else "all looks"


def _fetching(scene: Scene) -> tuple[MainThread, ...]:
    """Workers that were given work and go on with it."""
    found = [thread for thread in scene.workers(scene.world) if thread.leaf != IDLE]
    return tuple(
        thread for thread in found if thread.moved or goes_on(scene.process_of(thread.pid))
    )


def _weigh(scene: Scene) -> Weighings:
    ranks, share = _starved(scene)
    if (line := _made_in_the_steps(scene)) is not None:
        says = f"All ranks spend {line.share:.0%} of the time at {line.place}, which makes input"
        yield weighing(13, "suspects-stack", says, *line.samples)
        says = "It is the main threads that do so, between the steps"
        yield weighing(6, "other-stacks", says, *scene.threads(scene.world))
    if not ranks or 2 * len(ranks) < len(scene.world) or ranks == _steadily_last(scene):
        return
    threads = scene.threads(ranks)
    says = (
        f"{ranks_say(ranks)} {verb(ranks, 'stands', 'stand')} in the data loader in {share:.0%} of"
        f" {_of(scene)}"
    )
    yield weighing(13, "suspects-stack", says, *threads, *scene.of(Samples))
    fetching, workers = _fetching(scene), scene.workers(scene.world)
    anew = _workers_anew(scene)
    still = [
        thread
        for thread in (() if anew else workers)
        if thread.leaf != IDLE
        and thread.moved is False
        and not goes_on(scene.process_of(thread.pid))
    ]
    if anew:
        ended_s = ended_workers_s(anew)
        says = (
            f"Workers that have ended took {ended_s:.0f} s of processor time on each rank: they"
            " start anew all the time"
        )
        yield weighing(13, "process-state-and-locks", says, *anew)
    if fetching:
        says = (
            f"{len(fetching)} of {len(workers)} workers are at work, such as {fetching[0].pid} at"
            f" {fetching[0].where}"
        )
        yield weighing(10, "other-stacks", says, *fetching)
    elif still and scene.of(Samples):  # batches come: each takes long there
        says = f"{len(still)} of {len(workers)} workers are at {still[0].where} in all looks"
        yield weighing(6, "other-stacks", says, *still)
    elif still:
        yield weighing(
            -13, "other-stacks", f"Worker {still[0].pid} stands still at {still[0].where}", *still
        )
    elif workers and not anew:
        yield weighing(-13, "other-stacks", f"All {len(workers)} workers are idle", *workers)
    elif scene.of(Samples) or any(thread.moved for thread in threads):
        yield weighing(
            6, "other-stacks", "There are no workers: each rank loads its own samples", *threads
        )
    idle = [
        gpu
        for gpu in scene.of(Gpu)
        if gpu.utilization_percent is not None and gpu.utilization_percent < 50 and gpu.processes
    ]
    if idle:
        says = f"GPU {idle[0].index} is used for {idle[0].utilization_percent:.0f} % only"
        yield weighing(6, "gpu", says, *idle)


def _steadily_last(scene: Scene) -> tuple[int, ...]:
    """The one rank that the others wait for: it is late, whatever it does meanwhile."""
    seen = latest_in(scene.of(Samples))
    return (seen.latest,) if seen is not None and seen.latest is not None else ()


def _workers_anew(scene: Scene) -> tuple[ProcessState, ...]:
    """The ranks' processes, where all of them did little but start loader workers anew."""
    ranks = [scene.process(rank) for rank in scene.world]
    found = tuple(one for one in ranks if one is not None and starts_workers_anew(one))
    return found if found and len(found) == len(ranks) else ()


def _slowest(scene: Scene) -> list[str]:
    """The lines at which workers stand, most frequent first."""
    places = [thread.where for thread in _fetching(scene) if thread.where]
    return sorted(set(places), key=lambda place: -places.count(place))


def _made_at(scene: Scene) -> str:
    """The line at which samples are made: most workers' that are at work, else where the main
    threads that load by themselves are for half of the time; empty where no line stands out.
    """
    if scene.workers(scene.world):
        return next(iter(_slowest(scene)), "")
    place, share, _ = own_line(scene.of(Samples))
    return place if share >= HALF else ""


def _summary(scene: Scene) -> str:
    if (line := _made_in_the_steps(scene)) is not None:
        return (
            f"All ranks make their input themselves for {line.share:.0%} of the time, at"
            f" {line.place}, and train for the rest"
        )
    ranks, share = _starved(scene)
    at = (
        f"; {verb(ranks, 'its', 'their')} workers are at {and_list(_slowest(scene)[:2])}"
        if _slowest(scene)
        else ""
    )
    if anew := _workers_anew(scene):
        life_s, own_s = (min(getattr(one, of) or 0.0 for one in anew) for of in ("age_s", "used_s"))
        return (
            f"The loader workers of {ranks_say(ranks, capital=False)} start anew again and again,"
            f" as for each short epoch: in {life_s:.0f} s a rank worked for {own_s:.0f} s itself"
        )
    if not at and (place := _made_at(scene)):
        return (
            f"{ranks_say(ranks)} {verb(ranks, 'makes its', 'make their')} samples without workers"
            f" in {share:.0%} of {_of(scene)}, most of it at {place}"
        )
    from_ = sorted({one.remote for one in connections(scene)})
    read = f", reading from {and_list(from_[:2])}" if at and from_ else ""
    return (
        f"{ranks_say(ranks)} {verb(ranks, 'waits', 'wait')} for input in {share:.0%} of"
        f" {_of(scene)}{at}{read}"
    )


ANEW = """\
Keep the workers from epoch to epoch
    DataLoader(..., persistent_workers=True)
    an epoch that is short: go through the data set several times in one
"""

BESIDE = """\
Make it cheaper
    py-spy record -d 20 -o input.svg --pid {pid}   (what below {place} takes the time?)
Make it beside the steps
    a DataLoader with num_workers={workers}, or a thread that prepares the next batch
"""

CHEAPER = """\
Make a sample cheaper
    py-spy record -d 20 -o samples.svg --pid {pid}   (what below {place} takes the time?)
    what is the same for every sample (to open, read or parse a file): once, in __init__, and not
        in __getitem__
"""

WORKERS = """\
More workers that prepare ahead
    DataLoader(..., num_workers={workers}, prefetch_factor=4, persistent_workers=True)
"""

FIXES = """\
Make a sample cheaper
    profile __getitem__
    prepare samples beforehand
"""

STORAGE = """\
Faster storage
    copy the data set to a local disk; read large files in order (WebDataset, Arrow) instead of many
        small ones
"""


def _fixes(scene: Scene) -> Fixes:
    workers = len(scene.workers(scene.world)) // max(len(scene.world), 1)
    pid = next((thread.pid for thread in scene.threads(scene.world)), "<PID>")
    if (made := _made_in_the_steps(scene)) is not None:
        return fixes(BESIDE, pid=pid, place=made.place, workers=max(2 * workers, 4))
    pid = next((worker.pid for worker in scene.workers(scene.world)), pid)
    if _workers_anew(scene):
        order = ANEW + WORKERS + FIXES
    elif _made_at(scene):
        order = CHEAPER + WORKERS
    else:
        order = WORKERS + FIXES
    return fixes(order + STORAGE, workers=max(2 * workers, 4), pid=pid, place=_made_at(scene))


CAUSE = Cause(
    id="data-starvation",
    title="The ranks wait for input most of the time",
    modes=("slow",),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="trainprobe attach --watch 5: how often do main threads stand in the data loader?",
    accounts_for=("remote-service-wait",),
)
