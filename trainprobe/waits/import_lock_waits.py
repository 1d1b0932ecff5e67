"""What `LOCK:` lines of trainprobe.import_lock tell of a job of which logs are left: who holds
the import lock, and who waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.facts import Facts, LogEvent, LogJob, LogProgress
from trainprobe.model.diagnosis import Link
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.suspects import SuspectGroup

LONG_S = 30.0  # a waiter says again after so long; one line alone may be of any wait
_LINES = ("import-lock-waits", "import-lock-got", "import-lock-released", "import-lock-left")


@dataclass(frozen=True)
class ImportLockWait:
    """`waiting` and `gave_up` are the last words of those that did not get the lock, `got` the
    holder's, None where it printed none.

    `holder_rank` and `holder_pid` are of whoever holds it, None where nobody said. `held_s` is the
    longest that a waiter saw it held, in seconds.
    """

    path: str
    waiting: tuple[LogEvent, ...]
    gave_up: tuple[LogEvent, ...]
    got: LogEvent | None
    holder_rank: int | None
    holder_pid: int | None
    held_s: float

    @property
    def holder(self) -> str:
        """`rank 0 (pid 4240)`; `pid 911`; `nobody that is named`."""
        pid = f"pid {self.holder_pid}" if self.holder_pid is not None else ""
        if self.holder_rank is None:
            return pid or "nobody that is named"
        return f"rank {self.holder_rank}{f' ({pid})' if pid else ''}"

    @property
    def waiters(self) -> tuple[int, ...]:
        ranks = {rank_of(event) for event in (*self.waiting, *self.gave_up)}
        return tuple(sorted(rank for rank in ranks if rank is not None))


def import_lock_wait(facts: Facts, cell: str) -> ImportLockWait | None:
    """Return how the lock stands at the end of the logs; None where nobody waits or has given
    up.
    """
    events = [event for event in facts.of(LogEvent, cell=cell) if event.event in _LINES]
    last: dict[tuple[str, str], LogEvent] = {}
    for event in sorted(events, key=lambda one: one.place if one.place is not None else -1):
        last[event.host, event.captured.get("pid", "")] = event
    waiting = tuple(event for event in last.values() if event.event == "import-lock-waits")
    gave_up = tuple(event for event in last.values() if event.event == "import-lock-left")
    if not waiting and not gave_up:
        return None
    newest = max(
        (*waiting, *gave_up), key=lambda event: event.place if event.place is not None else -1
    )
    pid, rank = (
        _number(newest.captured.get("holder_pid")),
        _number(newest.captured.get("holder_rank")),
    )
    holds = [event for event in last.values() if event.event == "import-lock-got"]
    got = next(
        (event for event in holds if pid is None or _number(event.captured.get("pid")) == pid), None
    )
    if got is not None:
        pid, rank = _number(got.captured.get("pid")), rank_of(got)
    elif any(
        event.event == "import-lock-released" and _number(event.captured.get("pid")) == pid
        for event in last.values()
    ):
        pid = rank = None  # it has let go of it since
    held_s = max((_seconds(event.captured.get("held_s")) for event in waiting), default=0.0)
    held_s = max([held_s, *(_seconds(event.captured.get("waited_s")) for event in gave_up)])
    return ImportLockWait(newest.captured.get("file", ""), waiting, gave_up, got, rank, pid, held_s)


def lock_group(facts: Facts, job: LogJob) -> SuspectGroup | None:
    """The suspects of a log that stops while ranks wait for the import lock; None where none has
    waited long, or steps came afterwards.
    """
    told = import_lock_wait(facts, job.cell)
    if told is None or not told.waiting or told.held_s < LONG_S:
        return None
    newest = max(event.place or 0 for event in told.waiting)
    if any(
        (one.place or 0) > newest
        for one in facts.of(LogProgress, cell=job.cell)
        if one.step is not None
    ):
        return None
    ids = tuple(
        dict.fromkeys(
            id_
            for event in (*told.waiting, *((told.got,) if told.got else ()))
            for id_ in event.evidence
        )
    )
    waiters = told.waiters
    who = ranks_say(waiters) if waiters else "A process"
    says = (
        f"{who} {'wait' if len(waiters) > 1 else 'waits'} for the import lock {told.path}, which"
        f" {told.holder} holds for {told.held_s:.0f} s or more"
    )
    ranks = (told.holder_rank,) if told.holder_rank is not None else waiters
    world = max(job.world_size or 0, len({*waiters, *ranks}), 1)
    chain = (
        (Link(who, told.holder, "wants the import lock of", ids),)
        if told.holder_pid is not None
        else ()
    )
    return SuspectGroup(
        cell=job.cell,
        probe="job",
        ranks=ranks,
        how="stuck-inside",
        says=says,
        mode="hang",
        chain=chain,
        evidence=ids,
        world_size=world,
        victims=tuple(rank for rank in waiters if rank not in ranks),
    )


def rank_of(event: LogEvent) -> int | None:
    """The rank as the line itself says it, else whose line it is."""
    said = _number(event.captured.get("by"))
    return event.rank if said is None else said


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _seconds(text: str | None) -> float:
    try:
        return float(text or 0.0)
    except ValueError:
        return 0.0
