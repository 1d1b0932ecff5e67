"""Where each rank of a cell stood when it was last seen: one row per rank, put together from all
that was looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainprobe.facts import (
    Facts,
    MainThread,
    Plan,
    ProcessState,
    RankEnding,
    RankException,
    Rung,
    Thread,
)
from trainprobe.facts.collectives import CollectiveCall
from trainprobe.model.diagnosis import RankState
from trainprobe.stacks.classify import Place, classify
from trainprobe.stacks.frames import Frame

AT_A_GPU = "gpu-wait"
# Classes of a main thread's leaf (stacks.classify) that mean: inside a collective, or waiting for
# its result.
IN_COLLECTIVE = frozenset({"comm-wait", AT_A_GPU})
AT_A_KERNEL = "kernel-wait"  # of a standing: at a GPU where no other rank can be what it waits for
AT_THE_STORE = "store-wait"
STANDING_STILL = ("waiting", "stopped", "blocked", "spinning")
# Where the main thread only waits for another thread of its own process, that one may be the rank's
# voice.
_FOR_A_THREAD = frozenset({"lock", "child-wait", "net-io", ""})
OWN_WAITS = frozenset(
    {"sleep", "lock", "net-io", "child-wait", "dataloader", "import-lock", "file-io", "teardown"}
)


def behind_main(threads: Sequence[Thread], leaf: str) -> tuple[Thread, Place, Frame] | None:
    """The thread of a process that waits in a collective while the main thread, at a place of class
    `leaf`, waits for it, as last seen: with its place and the user's line.
    """
    latest = max((thread.look for thread in threads), default=0)
    for thread in threads if leaf in _FOR_A_THREAD else ():
        if thread.look == latest and not thread.main and thread.frames:
            place = classify(thread.frames)
            if place.leaf in IN_COLLECTIVE and place.user is not None:
                return thread, place, place.user
    return None


@dataclass(frozen=True)
class Standing:
    """One rank. `call` is the collective that it is inside by its journal; `evidence` are the ids
    that show where it stands.

    `goes_on` is true for a rank of a live job that was seen to work: it waits for nobody, wherever
    its stack ends.
    """

    rank: int
    state: RankState
    host: str = ""
    pid: int | None = None
    where: str = ""
    leaf: str = ""
    op: str = ""
    moved: bool | None = None
    since_s: float | None = None
    ending: RankEnding | None = None
    exception: RankException | None = None
    thread: MainThread | None = None
    process: ProcessState | None = None
    call: CollectiveCall | None = None
    evidence: tuple[str, ...] = ()
    goes_on: bool = False

    @property
    def alive(self) -> bool:
        return self.state not in ("exited", "crashed", "unseen")

    @property
    def in_collective(self) -> bool:
        if not self.alive or self.state in ("stopped", "blocked") or self.goes_on:
            return False
        if self.leaf:
            return self.leaf in IN_COLLECTIVE
        return self.call is not None

    @property
    def meeting(self) -> str:
        """The name of the collective that it is in."""
        if self.call is not None:
            return self.call.op
        return self.op or "a collective"


def meetings_of(ranks: Sequence[Standing]) -> dict[int, str]:
    """The collective of each rank. Call sites tell two of the same name apart only when nobody
    is missing from them.
    """
    inside = [standing for standing in ranks if standing.in_collective]
    by_name = {standing.rank: standing.meeting for standing in inside}
    if len(inside) == len(ranks) and len(set(by_name.values())) == 1:
        places = {
            standing.rank: standing.where
            if standing.thread is None or not standing.thread.in_backward
            else ""
            for standing in inside
        }
        if len(set(places.values())) > 1 and all(places.values()):
            return {rank: f"{by_name[rank]} at {place}" for rank, place in places.items()}
    return by_name


def standings(facts: Facts, rung: Rung) -> tuple[Standing, ...]:
    """One standing per rank of the cell's world, in order of rank; ranks never seen are there as
    `unseen`.
    """
    known = {
        fact.rank
        for kind in (RankEnding, MainThread, ProcessState)
        for fact in facts.of(kind, cell=rung.cell)
        if fact.rank is not None
    }
    world = sorted(known | set(range(max(rung.nproc, 0) if rung.nproc <= 1_000_000 else 0)))
    plan = facts.one(Plan)
    host = plan.host if plan else ""
    silent_s = rung.silent_s if rung.outcome == "timed_out" else None
    return tuple(
        _standing(
            facts,
            rung.cell,
            rank,
            rung.hosts[0] if rung.alone else rung.host_of(rank) or host,
            silent_s,
        )
        for rank in world
    )


def _standing(facts: Facts, cell: str, rank: int, host: str, silent_s: float | None) -> Standing:
    endings = [fact for fact in facts.of(RankEnding, cell=cell, rank=rank) if fact.role == "rank"]
    ending = endings[0] if endings else None
    threads = [fact for fact in facts.of(MainThread, cell=cell, rank=rank) if fact.role == "rank"]
    live = next((fact for fact in threads if fact.source == "py-spy" and fact.frames), None)
    thread = live or (threads[0] if threads else None)
    process = next(
        (fact for fact in facts.of(ProcessState, cell=cell, rank=rank) if fact.role == "rank"), None
    )
    exception = _last_exception(facts, cell, rank)
    call = _open_call(facts, cell, rank)
    state = _state(ending, live, process, call)
    where = thread.where if thread is not None else ""
    if not where and exception is not None and exception.frames:
        where = _user_place(exception)
    if not where and call is not None:
        where = f"{call.file.rsplit('/', 1)[-1]}:{call.line} in {call.function}"
    shown = [fact.evidence for fact in (ending, thread, process, exception) if fact is not None]
    pid = next(
        (fact.pid for fact in (ending, thread, process) if fact is not None and fact.pid), None
    )
    return Standing(
        rank=rank,
        state=state,
        host=(ending.host if ending is not None and ending.host else host),
        pid=pid,
        where=where,
        leaf=thread.leaf if thread is not None else "",
        op=thread.op if thread is not None else "",
        moved=live.moved if live is not None else None,
        # A waiting thread may wake often (gloo's do); the job's silence says more, where that is
        # known.
        since_s=(
            max(
                (
                    one
                    for one in (process.asleep_s if process else None, silent_s)
                    if one is not None
                ),
                default=None,
            )
            if state in STANDING_STILL
            else None
        ),
        ending=ending,
        exception=exception,
        thread=thread,
        process=process,
        call=call,
        evidence=tuple(dict.fromkeys(id_ for ids in shown for id_ in ids)),
    )


def _state(
    ending: RankEnding | None,
    live: MainThread | None,
    process: ProcessState | None,
    call: CollectiveCall | None,
) -> RankState:
    if (
        ending is not None
        and ending.how != "not_run"
        and not (ending.by_us or ending.by_launcher)
        and ending.how != "timed_out"
    ):
        return "exited" if ending.how == "exited" and ending.code == 0 else "crashed"
    if process is not None and process.state in ("T", "t"):
        return "stopped"
    if process is not None and process.state == "D" and not process.cpu_moved:
        return "blocked"
    if live is not None:
        if live.leaf in IN_COLLECTIVE or live.leaf == AT_THE_STORE or live.leaf in OWN_WAITS:
            return "computing" if live.moved else "waiting"
        if live.moved is False and process is not None and process.cpu_moved:
            return "spinning"
        return (
            "computing"
            if live.moved is not False or (process is not None and process.state == "R")
            else "waiting"
        )
    if call is not None and (ending is None or ending.by_us):
        return "waiting"
    if ending is not None and ending.by_launcher:
        return "crashed"
    return "unseen"


def _last_exception(facts: Facts, cell: str, rank: int) -> RankException | None:
    found = [
        fact
        for fact in facts.of(RankException, cell=cell, rank=rank)
        if fact.role == "rank" and not fact.handled
    ]
    return next((fact for fact in found if not fact.echo), found[0] if found else None)


def _open_call(facts: Facts, cell: str, rank: int) -> CollectiveCall | None:
    open_calls = [
        fact for fact in facts.of(CollectiveCall, cell=cell, rank=rank) if not fact.finished
    ]
    return open_calls[-1] if open_calls else None


def _user_place(exception: RankException) -> str:
    for frame in reversed(exception.frames):
        if (
            "/site-packages/" not in frame.file
            and "/torch/" not in frame.file
            and not frame.file.startswith("<")
        ):
            return frame.where
    return exception.frames[-1].where
