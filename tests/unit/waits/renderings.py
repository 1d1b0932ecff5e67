"""One situation of a hung job of four ranks, rendered into each source of evidence that can carry
it: looks at the live job, the same with the recorders or with NCCL's RAS, a ladder cell with its
journal, flight-recorder dumps, a watchdog's log and two reports that name the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.unit.facts.records import Records
from tests.unit.recorder.dumps import CELL as DUMPED
from tests.unit.recorder.dumps import entry, facts_of, in_group, nccl, send_or_recv
from tests.unit.waits.live_rows import C10D, CELL, LOADER, MAIN, SITE, job, own, process, site
from trainprobe.causes import built
from trainprobe.causes.priors import load_priors
from trainprobe.facts import (
    CollectiveCall,
    Facts,
    FlightDump,
    JobRank,
    LockWait,
    Plan,
    RankEnding,
    RasCommunicator,
    Rung,
)
from trainprobe.facts.launched_calls import join_launched_calls
from trainprobe.facts.thread_places import join_threads
from trainprobe.judge import judge
from trainprobe.model.facts import Fact
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain
from trainprobe.stacks.frames import Frame

RANKS = 4
FIRST = 3
"""Number of the call in which the others wait; all earlier ones were made together."""
LINE, PEER_LINE = 40, 60
RUNG = f"user_script@{RANKS}"
BACKEND = {"all_reduce": "ALLREDUCE", "recv": "RECV", "all_gather": "ALLGATHER"}
STUCK, STOPPED, KILLED, LOCK, WORKER = "stuck", "stopped", "killed", "lock", "worker"


@dataclass(frozen=True)
class Waits:
    """What a rank waits in: an operation of a group (`mesh` name and members), or of a peer."""

    op: str = "all_reduce"
    group: str = "0"
    members: tuple[int, ...] = tuple(range(RANKS))
    peer: int | None = None


@dataclass(frozen=True)
class Hang:
    """`doing`: what each rank does. `left_out`: sources that cannot carry the cause, and why. `over`:
    sources that are written after all ranks have ended, so that the job has crashed.
    """

    name: str
    doing: Mapping[int, Waits | str]
    cause: str
    ranks: tuple[int, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    over: tuple[str, ...] = ()


def waiting(situation: Hang) -> dict[int, Waits]:
    return {rank: what for rank, what in situation.doing.items() if isinstance(what, Waits)}


def _frames(wait: Waits) -> tuple[Frame, ...]:
    line = LINE if wait.peer is None else PEER_LINE + wait.peer
    return (MAIN, Frame("step", "/job/train.py", line), Frame(wait.op, C10D, 3252))


def _processes(situation: Hang) -> list[Fact]:
    """What looks at the processes show, of a live job as of a cell."""
    facts: list[Fact] = []
    for rank, what in situation.doing.items():
        pid = 100 + rank
        if isinstance(what, Waits):
            facts += process(pid, _frames(what), _frames(what), rank=rank)
            if what.peer is not None:
                facts.append(site(PEER_LINE + what.peer, f"dist.{what.op}(x, src={what.peer})"))
        elif what == STUCK:
            facts += process(pid, own("settle", 31), own("settle", 31), rank=rank)
            facts.append(site(31, "time.sleep(3600)"))
        elif what == STOPPED:
            facts += process(pid, own("step", 44), own("step", 44), rank=rank, state="T")
        elif what == KILLED:
            facts.append(_ending(rank))
        elif what == LOCK:
            facts += process(pid, own("cache", 41), own("cache", 41), rank=rank)
            facts.append(site(41, "fcntl.flock(handle, fcntl.LOCK_EX)"))
            facts.append(
                LockWait((f"E{pid}",), CELL, pid=pid, holder_pid=911, path="/nfs/cache/ds.lock")
            )
        elif what == WORKER:
            fetch = (MAIN, Frame("__next__", LOADER, 701), Frame("_try_get_data", LOADER, 1131))
            loop = Frame("_worker_loop", SITE + "torch/utils/data/_utils/worker.py", 300)
            stuck = (loop, Frame("__getitem__", "/job/train.py", 9))
            facts += process(pid, fetch, fetch, rank=rank, age_s=0.5)
            facts += process(
                700 + rank, stuck, stuck, rank=rank, role="loader-worker", ppid=pid, wrote_bytes=0
            )
            facts.append(site(9, "time.sleep(3600)"))
    return facts


def _ending(rank: int) -> RankEnding:
    return RankEnding(
        (f"E{100 + rank}",),
        CELL,
        rank,
        pid=100 + rank,
        how="signalled",
        signal=9,
        signal_name="SIGKILL",
        at=1000.0,
        failed_at=1000.0,
        order=0,
    )


def _concluded(facts: list[Fact]) -> Any:
    return judge(Facts(join_threads(facts)), built(), load_priors())


def live(situation: Hang, _: Path) -> Any:
    members = [JobRank((f"E{100 + rank}",), CELL, rank, pid=100 + rank) for rank in range(RANKS)]
    return _concluded([job(RANKS), *members, *_processes(situation)])


def live_deep(situation: Hang, _: Path) -> Any:
    """The same, where the ranks' flight recorders could be asked."""
    members = [JobRank((f"E{100 + rank}",), CELL, rank, pid=100 + rank) for rank in range(RANKS)]
    asked = {rank: dump for rank, dump in _dumps(situation).items() if _answers(situation, rank)}
    return _concluded([job(RANKS), *members, *_processes(situation), *recorded_facts(asked)])


def live_ras(situation: Hang, _: Path) -> Any:
    """The same, where NCCL's RAS told who has launched what; a process that cannot run is missing."""
    members = [JobRank((f"E{100 + rank}",), CELL, rank, pid=100 + rank) for rank in range(RANKS)]
    groups = {"0": tuple(range(RANKS))}
    groups |= {wait.group: wait.members for wait in waiting(situation).values()}
    asked = Records(CELL).add(
        "ras",
        {"communicators": [_communicator(situation, *group) for group in groups.items()]},
    )
    facts: list[Fact] = [job(RANKS), *members, *_processes(situation)]
    return _concluded(join_launched_calls([*facts, *asked.facts().of(RasCommunicator)]))


def _communicator(situation: Hang, group: str, members: Sequence[int]) -> Mapping[str, Any]:
    """Collectives that were launched in it; sends and receives are not counted."""
    rows = []
    for number, rank in enumerate(members):
        what = situation.doing[rank]
        inside = isinstance(what, Waits) and what.peer is None and what.group == group
        launched = (FIRST if group == "0" else 1) - (0 if inside else 1)
        rows.append(
            {
                "rank": number,
                "host": "10.0.0.7",
                "pid": 100 + rank,
                "counts": {"AllReduce": launched},
            }
        )
    lost = [row for rank, row in zip(members, rows, strict=True) if not _answers(situation, rank)]
    return {
        "hash": f"0xae{group}",
        "size": len(members),
        "ranks": [row for row in rows if row not in lost],
        "missing": lost,
    }


def recorded_facts(dumped: Mapping[int, bytes]) -> list[Fact]:
    """What a live job's recorders show, from their dumps by rank."""
    assert DUMPED == CELL
    recorded = facts_of(dumped)
    return [*recorded.of(CollectiveCall), *recorded.of(FlightDump)]


def _answers(situation: Hang, rank: int) -> bool:
    """Can the rank still run the code that writes its dump?"""
    return situation.doing[rank] not in (STOPPED, KILLED)


def cell(situation: Hang, _: Path) -> Any:
    facts: list[Fact] = [replace(fact, cell=RUNG) for fact in _processes(situation)]
    facts.append(Plan(nproc=RANKS, host="node7", argv=("train.py",), form="launch"))
    facts.append(
        Rung(
            ("E1",),
            RUNG,
            None,
            10,
            "user_script",
            "Does it?",
            RANKS,
            "timed_out",
            stopped_because="stall",
            silent_s=60.0,
        )
    )
    for rank, what in situation.doing.items():
        last = FIRST + 1 if isinstance(what, Waits) and what.peer is None else FIRST
        facts += [
            CollectiveCall(
                (f"E{100 + rank}",),
                RUNG,
                rank,
                number=number,
                op="all_reduce",
                sizes=(4096,),
                dtype="float32",
                file="/job/train.py",
                line=LINE,
                at=1000.0 + number,
                finished=number < FIRST,
            )
            for number in range(last)
        ]
    return _concluded(facts)


def _dumps(situation: Hang) -> dict[int, bytes]:
    groups = {"0": tuple(range(RANKS))}
    groups |= {wait.group: wait.members for wait in waiting(situation).values()}
    made = {}
    for rank, what in situation.doing.items():
        rows = [entry(number, line=LINE) for number in range(1, FIRST)]
        if isinstance(what, Waits) and what.peer is not None:
            rows.append(send_or_recv(f"recv {rank}<-{what.peer}", 1, state="started"))
        elif isinstance(what, Waits) and what.group != "0":
            place = in_group(what.group, int(what.group))
            rows.append(entry(1, what.op, line=LINE, state="started", **place))
        elif isinstance(what, Waits):
            rows.append(entry(FIRST, what.op, line=LINE, state="started"))
        made[rank] = nccl(rows, {name: list(ranks) for name, ranks in groups.items()})
    return made


def dumps(situation: Hang, folder: Path) -> Any:
    for rank, content in _dumps(situation).items():
        (folder / f"nccl_trace_rank_{rank}").write_bytes(content)
    return _explained(folder)


def _explained(folder: Path) -> Any:
    return explain(ExplainRequest(paths=(str(folder),), argv=("trainprobe", "explain")))


def _watchdog(rank: int, wait: Waits) -> str:
    number = FIRST if wait.group == "0" else 1
    group = f"[PG ID {wait.group} PG GUID {wait.group} Rank {rank}] "
    return (
        f"[rank{rank}]:[E1120 10:40:0{rank}.123456789 ProcessGroupNCCL.cpp:632] {group}Watchdog"
        f" caught collective operation timeout: WorkNCCL(SeqNum={number},"
        f" OpType={BACKEND[wait.op]}, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for"
        " 600041 milliseconds before timing out."
    )


def log(situation: Hang, folder: Path) -> Any:
    lines = [f"[rank{rank}]: step {FIRST} loss 1.0" for rank in range(RANKS)]
    lines += [_watchdog(rank, wait) for rank, wait in waiting(situation).items()]
    for rank, what in situation.doing.items():
        if what == KILLED:
            lines.append(
                "E1120 10:40:05.000000 900 torch/distributed/elastic/multiprocessing/api.py:826]"
                f" failed (exitcode: -9) local_rank: {rank} (pid: {100 + rank}) of binary:"
                " /usr/bin/python3"
            )
    (folder / "job.log").write_text("\n".join(lines) + "\n")
    return _explained(folder)


def report(situation: Hang, folder: Path) -> Any:
    """A monitored barrier: the ranks that did not come, by name."""
    absent = ", ".join(map(str, _absent(situation)))
    says = f"[Rank 0]: Ranks {absent} failed to pass monitoredBarrier in 600000 ms"
    return _reported(situation, folder, f"[rank0]: RuntimeError: {says}")


def desync(situation: Hang, folder: Path) -> Any:
    """Torch's own desync report: the last call of each rank that did not come."""
    return _reported(
        situation,
        folder,
        " - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:",
        f"   - {_absent(situation)} finished collective #{FIRST - 1}, but didn't join collective"
        f" #{FIRST} (count from 1)",
    )


def _absent(situation: Hang) -> list[int]:
    return [rank for rank, what in situation.doing.items() if not isinstance(what, Waits)]


def _reported(situation: Hang, folder: Path, *said: str) -> Any:
    lines = [f"[rank{rank}]: step {FIRST} loss 1.0" for rank in range(RANKS)]
    lines += [_watchdog(rank, wait) for rank, wait in list(waiting(situation).items())[:1]]
    (folder / "job.log").write_text("\n".join([*lines, *said]) + "\n")
    return _explained(folder)


SOURCES: dict[str, Callable[[Hang, Path], Any]] = {
    "live": live,
    "live with recorder": live_deep,
    "live with RAS": live_ras,
    "cell": cell,
    "dumps": dumps,
    "log": log,
    "report": report,
    "desync": desync,
}
