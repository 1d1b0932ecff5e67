"""One situation, one answer, whichever source shows it: a live job, a ladder cell, a recorder's
dumps (pickled and JSON) or a log.

In the first part the ranks' calls part; in the second they wait for a rank that makes no call.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.unit.facts.records import Records
from tests.unit.recorder.dumps import entry, nccl
from tests.unit.waits.live_rows import C10D, CELL, MAIN, SITE, job, own
from tests.unit.waits.live_rows import rank as rank_facts
from tests.unit.waits.renderings import (
    KILLED,
    LOCK,
    SOURCES,
    STOPPED,
    STUCK,
    WORKER,
    Hang,
    Waits,
    recorded_facts,
)
from trainprobe.causes import built
from trainprobe.causes.priors import load_priors
from trainprobe.facts import CollectiveCall, Facts, Plan, RasCommunicator, Rung
from trainprobe.facts.launched_calls import join_launched_calls
from trainprobe.facts.thread_places import join_threads
from trainprobe.judge import judge
from trainprobe.model.facts import Fact
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain
from trainprobe.stacks.frames import Frame

RANKS = 4
CUDA = SITE + "torch/cuda/__init__.py"
FIRST = (
    3  # number of the first call in which somebody is stuck; all earlier calls were done together
)
BACKEND = {
    "all_reduce": "ALLREDUCE",
    "broadcast": "BROADCAST",
    "reduce": "REDUCE",
    "all_gather": "ALLGATHER",
    "barrier": "BARRIER",
    "all_gather_into_tensor": "_ALLGATHER_BASE",
    "reduce_scatter": "REDUCE_SCATTER",
    "reduce_scatter_tensor": "_REDUCE_SCATTER_BASE",
    "all_to_all_single": "ALLTOALL_BASE",
    "all_to_all": "ALLTOALL",
    "gather": "GATHER",
}


class Call(NamedTuple):
    op: str
    numel_in: int
    numel_out: int


class Situation(NamedTuple):
    """`calls`: by rank, its calls from FIRST on, none of which ends. `cause` and `ranks` are the
    truth; `journal` is false where a journal tells too little.
    """

    name: str
    calls: tuple[tuple[Call, ...], ...]
    cause: str
    ranks: tuple[int, ...]
    journal: bool = True


def odd(rank: int, usual: Call, other: Call) -> tuple[tuple[Call, ...], ...]:
    return tuple((other if one == rank else usual,) for one in range(RANKS))


def same(op: str, numel: int, numel_out: int | None = None) -> Call:
    return Call(op, numel, numel if numel_out is None else numel_out)


SHAPE, ORDER, CONDITIONAL = (
    "collective-shape-mismatch",
    "collective-order-mismatch",
    "rank-conditional-collective",
)
A, B = same("all_reduce", 4096), same("broadcast", 512)
SITUATIONS = [
    *(
        Situation(f"size-{op}-{rank}", odd(rank, same(op, 512), same(op, 500)), SHAPE, (rank,))
        for op in ("all_reduce", "broadcast", "reduce")
        for rank in (0, 2)
    ),
    Situation(
        "size-two-camps",
        (
            (same("all_reduce", 8),),
            (same("all_reduce", 8),),
            (same("all_reduce", 9),),
            (same("all_reduce", 9),),
        ),
        SHAPE,
        (0, 1, 2, 3),
    ),
    Situation(
        "size-three-camps",
        (*odd(1, same("all_reduce", 8), same("all_reduce", 9))[:3], (same("all_reduce", 10),)),
        SHAPE,
        (1, 3),
    ),
    *(
        Situation(
            f"size-all_gather-{rank}",
            odd(rank, same("all_gather", 4, 16), same("all_gather", 8, 32)),
            SHAPE,
            (rank,),
        )
        for rank in (0, 3)
    ),
    Situation(
        "size-reduce_scatter",
        odd(2, same("reduce_scatter", 64, 16), same("reduce_scatter", 32, 8)),
        SHAPE,
        (2,),
    ),
    Situation(
        "size-all_to_all",
        odd(3, same("all_to_all_single", 16), same("all_to_all_single", 12, 16)),
        SHAPE,
        (3,),
        journal=False,
    ),
    Situation(
        "size-all_to_all-out",
        odd(1, same("all_to_all", 16), same("all_to_all", 16, 20)),
        SHAPE,
        (1,),
        journal=False,
    ),
    *(
        Situation(
            f"order-{rank}",
            tuple((B, A) if one == rank else (A, B) for one in range(RANKS)),
            ORDER,
            (rank,),
        )
        for rank in range(RANKS)
    ),
    Situation(
        "order-sizes",
        tuple(
            (same("all_reduce", 9), A) if one == 1 else (A, same("all_reduce", 9))
            for one in range(RANKS)
        ),
        ORDER,
        (1,),
    ),
    *(
        Situation(f"operation-{rank}", odd(rank, A, B), CONDITIONAL, (rank,))
        for rank in range(RANKS)
    ),
    Situation("operation-barrier", odd(0, A, same("barrier", 1)), CONDITIONAL, (0,)),
    Situation(
        "flag-among-gradients",
        odd(0, same("all_reduce", 25_000_000), same("all_reduce", 1)),
        CONDITIONAL,
        (0,),
        journal=False,
    ),
]
# Of these the ranks' calls fit together: nothing may be made of the sizes.
FITTING = [
    Situation(
        "uneven-all_gather", odd(0, same("all_gather", 4, 20), same("all_gather", 8, 20)), "", ()
    ),
    Situation(
        "uneven-reduce_scatter",
        odd(0, same("reduce_scatter", 20, 4), same("reduce_scatter", 20, 8)),
        "",
        (),
    ),
    Situation(
        "uneven-all_to_all",
        (
            (same("all_to_all_single", 16, 12),),
            (same("all_to_all_single", 12, 16),),
            (same("all_to_all_single", 16),),
            (same("all_to_all_single", 16),),
        ),
        "",
        (),
    ),
    Situation("gather-on-rank-0", odd(0, same("gather", 4, 0), same("gather", 4, 16)), "", ()),
]


def line_of(call: Call, situation: Situation) -> int:
    """Calls of one operation come from one line of code, others from another; a flag is reduced
    elsewhere than gradients.
    """
    kinds = sorted({_kind(one, situation) for calls in situation.calls for one in calls})
    return 40 + kinds.index(_kind(call, situation)) if _kind(call, situation) in kinds else 30


def _kind(call: Call, situation: Situation) -> tuple[str, int]:
    return (call.op, 0 if situation.cause == SHAPE else call.numel_in)


def journal(situation: Situation) -> Any:
    facts: list[Fact] = [Plan(nproc=RANKS, host="node7", argv=("train.py",), form="launch")]
    facts.append(
        Rung(
            ("E1",),
            f"user_script@{RANKS}",
            None,
            10,
            "user_script",
            "Does it?",
            RANKS,
            "timed_out",
            stopped_because="stall",
        )
    )
    for rank, calls in enumerate(situation.calls):
        done = [Call("all_reduce", 4096, 4096)] * FIRST
        for number, call in enumerate([*done, *calls]):
            finished = number < FIRST
            facts.append(
                CollectiveCall(
                    (f"E{rank + 2}",),
                    f"user_script@{RANKS}",
                    rank,
                    number=number,
                    op=call.op,
                    sizes=(call.numel_in,),
                    dtype="float32",
                    file="/job/train.py",
                    line=line_of(call, situation),
                    at=1000.0 + number,
                    finished=finished,
                )
            )
    return judge(Facts(facts), built(), load_priors())


def dump_of(situation: Situation, calls: tuple[Call, ...]) -> bytes:
    rows = [entry(number) for number in range(1, FIRST)]
    rows += [
        entry(
            FIRST + place,
            call.op,
            line=line_of(call, situation),
            state="started" if place == 0 else "scheduled",
            input_sizes=[[call.numel_in]],
            output_sizes=[[call.numel_out]],
        )
        for place, call in enumerate(calls)
    ]
    return nccl(rows, {"0": list(range(RANKS))})


def dumps(situation: Situation, *, as_json: bool) -> Callable[[Path], Any]:
    def write(folder: Path) -> Any:
        for rank, calls in enumerate(situation.calls):
            made = dump_of(situation, calls)
            path = folder / f"nccl_trace_rank_{rank}"
            path.write_bytes(json.dumps(pickle.loads(made)).encode() if as_json else made)
        return explain(ExplainRequest(paths=(str(folder),), argv=("trainprobe", "explain")))

    return write


def live(situation: Situation) -> Any:
    """Two looks at the stacks of the live job, and the recorders that it was asked for."""
    facts: list[Fact] = [job(RANKS)]
    for number, calls in enumerate(situation.calls):
        if calls:
            step = Frame("step", "/job/train.py", line_of(calls[0], situation))
            stack = (MAIN, step, Frame(calls[0].op, C10D, 3252))
            facts += rank_facts(number, stack, stack)
        else:
            facts += rank_facts(number, own("settle", 31), own("settle", 31))
    dumped = {rank: dump_of(situation, calls) for rank, calls in enumerate(situation.calls)}
    return judge(Facts(join_threads([*facts, *recorded_facts(dumped)])), built(), load_priors())


def log(situation: Situation, folder: Path) -> Any:
    lines = [f"[rank{rank}]: step {FIRST} loss 1.0" for rank in range(RANKS)]
    for rank, calls in enumerate(situation.calls):
        for place, call in enumerate(calls):
            work = (
                f"WorkNCCL(SeqNum={FIRST + place}, OpType={BACKEND[call.op]},"
                f" NumelIn={call.numel_in}, NumelOut={call.numel_out}, Timeout(ms)=600000)"
            )
            lines.append(
                f"[rank{rank}]:[E1120 10:40:0{rank}.123456789 ProcessGroupNCCL.cpp:632] [Rank"
                f" {rank}] Watchdog caught collective operation timeout: {work} ran for 600041"
                " milliseconds before timing out."
            )
    (folder / "job.log").write_text("\n".join(lines) + "\n")
    return explain(ExplainRequest(paths=(str(folder),), argv=("trainprobe", "explain")))


def answers(situation: Situation, folder: Path) -> Mapping[str, Any]:
    sources: dict[str, Callable[[Path], Any]] = {
        "live": lambda _: live(situation),
        "dumps": dumps(situation, as_json=False),
        "json dumps": dumps(situation, as_json=True),
        "log": lambda there: log(situation, there),
    }
    if situation.journal:
        sources["journal"] = lambda _: journal(situation)
    found = {}
    for source, render in sources.items():
        there = folder / source.replace(" ", "-")
        there.mkdir(parents=True)
        found[source] = render(there)
    return found


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name)
def test_each_source_gives_the_same_answer(situation: Situation, tmp_path: Path) -> None:
    found = {
        source: (str(report.verdict), report.causes[0].id, sorted(report.causes[0].ranks))
        for source, report in answers(situation, tmp_path).items()
    }
    assert found == dict.fromkeys(found, ("hung", situation.cause, list(situation.ranks)))


@pytest.mark.parametrize(
    "situation",
    [
        situation
        for situation in SITUATIONS
        if situation.name.startswith("order-")
        and situation.calls[0][0].op != situation.calls[0][1].op
    ],
    ids=lambda situation: situation.name,
)
def test_an_order_whose_next_calls_are_unknown_is_judged_alike(
    situation: Situation, tmp_path: Path
) -> None:
    """Of calls that block, each source shows only the one in which a rank is stuck."""
    stuck = situation._replace(calls=tuple(calls[:1] for calls in situation.calls))
    found = {
        source: (report.causes[0].id, sorted(report.causes[0].ranks))
        for source, report in answers(stuck, tmp_path).items()
    }
    assert len(set(map(str, found.values()))) == 1, found
    for report in answers(stuck, tmp_path / "again").values():
        assert {ORDER, CONDITIONAL} <= {cause.id for cause in report.causes}


@pytest.mark.parametrize("situation", FITTING, ids=lambda situation: situation.name)
def test_sizes_that_fit_are_no_mismatch_in_any_source(situation: Situation, tmp_path: Path) -> None:
    for source, report in answers(situation._replace(journal=False), tmp_path).items():
        assert SHAPE not in [cause.id for cause in report.causes if cause.named], source
        assert not math.isnan(sum(cause.confidence for cause in report.causes))


def finger_print(rank: int, call: Call) -> str:
    return (
        f"Rank {rank} is running collective: CollectiveFingerPrint(SequenceNumber={FIRST},"
        f" OpType={BACKEND[call.op]}, TensorShape=[{call.numel_in}], TensorDtypes=Float,"
        " TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu))"
    )


def compared(situation: Situation, folder: Path) -> Any:
    """What torch prints where it compares the calls before it makes them; each rank raises."""
    lines = [f"[rank{rank}]: step {FIRST} loss 1.0" for rank in range(RANKS)]
    first = [calls[0] for calls in situation.calls]
    for rank, mine in enumerate(first):
        other = next(one for one, theirs in enumerate(first) if theirs != mine)
        lines += [
            f"[rank{rank}]: Traceback (most recent call last):",
            f'[rank{rank}]:   File "/job/train.py", line {line_of(mine, situation)}, in step',
            f"[rank{rank}]:     work(x)",
            (
                f"[rank{rank}]: RuntimeError: Detected mismatch between collectives on ranks."
                f" {finger_print(rank, mine)}, but {finger_print(other, first[other])}."
            ),
        ]
    (folder / "job.log").write_text("\n".join(lines) + "\n")
    return explain(ExplainRequest(paths=(str(folder),), argv=("trainprobe", "explain")))


@pytest.mark.parametrize(
    "situation",
    [one for one in SITUATIONS if one.journal and one.name != "size-all_to_all"],
    ids=lambda situation: situation.name,
)
def test_calls_that_torch_compared_name_the_same_ranks(
    situation: Situation, tmp_path: Path
) -> None:
    """These jobs have crashed. Of an order the next calls are unknown, so it may be other calls."""
    report = compared(situation, tmp_path)
    accepted = {situation.cause} if situation.cause == SHAPE else {ORDER, CONDITIONAL}
    assert (str(report.verdict), sorted(report.suspects[0].ranks)) == (
        "crashed",
        list(situation.ranks),
    )
    assert candidates(report)[0] in accepted


MISSING = [
    Situation(
        f"missing-{rank}",
        tuple(() if one == rank else (A,) for one in range(RANKS)),
        "rank-stuck",
        (rank,),
    )
    for rank in range(RANKS)
]


@pytest.mark.parametrize("situation", MISSING, ids=lambda situation: situation.name)
def test_a_rank_that_never_made_the_call_is_named_by_dumps_as_by_a_log(
    situation: Situation, tmp_path: Path
) -> None:
    found = answers(situation._replace(journal=False), tmp_path)
    (rank,) = situation.ranks
    assert {source: sorted(report.causes[0].ranks) for source, report in found.items()} == {
        source: [rank] for source in found
    }
    assert {
        source: "rank-stuck" in [cause.id for cause in report.causes]
        for source, report in found.items()
    } == dict.fromkeys(found, True)
    report = found["dumps"]
    assert report.causes[0].id == "rank-stuck"
    assert f"Rank {rank} did not join all_reduce [4096] Float" in report.causes[0].summary
    assert [row.state for row in report.world.ranks if row.rank == rank] == ["unseen"], (
        "outside of a recorded call is not computing"
    )
    assert (report.advice, report.expiry, report.killing) == (
        "",
        (),
        None,
    ), "of dumps there is nothing to kill"


def test_a_rank_without_a_dump_is_named_and_not_accused(tmp_path: Path) -> None:
    dumps(MISSING[1], as_json=False)(tmp_path)
    (tmp_path / "nccl_trace_rank_1").unlink()
    report = explain(ExplainRequest(paths=(str(tmp_path),), argv=("trainprobe", "explain")))
    assert (str(report.verdict), report.causes[0].id, list(report.causes[0].ranks)) == (
        "hung",
        "unknown",
        [1],
    )
    assert any(
        "trainprobe explain <DUMPS> <LOGS>" in step
        for fix in report.causes[0].fixes
        for step in fix.steps
    )


def without(rank: int, doing: str) -> dict[int, Waits | str]:
    """All ranks wait in one collective, except this one."""
    return {number: doing if number == rank else Waits() for number in range(RANKS)}


SILENCE = (
    "a rank that prints nothing may as well be dead: rank-stuck is a candidate, not the answer"
)
NO_DUMP = "a process that cannot run writes no dump"
ONLY_CALLS = "a recorder and a log show calls, neither locks nor workers"
UNTOLD = dict.fromkeys(("log", "report", "desync"), SILENCE)
CALLS_ALONE = dict.fromkeys(("dumps", "log", "report", "desync"), ONLY_CALLS)
GONE = {"dumps": NO_DUMP, **UNTOLD}
RECV_OF_LOG = "a watchdog's line does not name the peer"


def mesh(tensor: int, data: int) -> tuple[Waits, Waits]:
    """Groups of a mesh of two by two: {0,1} and {2,3} along one dimension, {0,2} and {1,3} along
    the other.
    """
    return (
        Waits(group="12"[tensor], members=((0, 1), (2, 3))[tensor]),
        Waits(group="34"[data], members=((0, 2), (1, 3))[data]),
    )


HANGS = [
    *(
        Hang(f"stuck-{rank}", without(rank, STUCK), "rank-stuck", (rank,), UNTOLD)
        for rank in (0, 2)
    ),
    *(
        Hang(f"stopped-{rank}", without(rank, STOPPED), "process-stopped", (rank,), GONE)
        for rank in (0, 2)
    ),
    *(
        Hang(f"killed-{rank}", without(rank, KILLED), "rank-killed", (rank,), GONE, over=("log",))
        for rank in (0, 2)
    ),
    *(
        Hang(f"lock-{rank}", without(rank, LOCK), "file-lock-held", (rank,), CALLS_ALONE)
        for rank in (0, 2)
    ),
    *(
        Hang(f"worker-{rank}", without(rank, WORKER), "data-worker-stuck", (rank,), CALLS_ALONE)
        for rank in (0, 2)
    ),
    Hang(
        "receive-of-a-stuck-rank",
        {**without(2, STUCK), 3: Waits("recv", peer=2)},
        "rank-stuck",
        (2,),
        UNTOLD,
    ),
    Hang(
        "receives-in-a-row",
        {0: STUCK, **{rank: Waits("recv", peer=rank - 1) for rank in range(1, RANKS)}},
        "rank-stuck",
        (0,),
        UNTOLD,
    ),
    Hang(
        "mesh-stuck-3",
        {0: mesh(0, 0)[0], 1: mesh(0, 1)[1], 2: mesh(1, 0)[0], 3: STUCK},
        "rank-stuck",
        (3,),
        UNTOLD,
    ),
    Hang(
        "mesh-stuck-0",
        {0: STUCK, 1: mesh(0, 1)[0], 2: mesh(0, 0)[1], 3: mesh(1, 1)[0]},
        "rank-stuck",
        (0,),
        UNTOLD,
    ),
    Hang(
        "mesh-worker-1",
        {0: mesh(0, 0)[0], 1: WORKER, 2: mesh(1, 0)[0], 3: mesh(1, 1)[1]},
        "data-worker-stuck",
        (1,),
        CALLS_ALONE,
    ),
]
CIRCLE = Hang(
    "receives-in-a-circle",
    {0: Waits("recv", peer=1), 1: Waits("recv", peer=0), 2: Waits(), 3: Waits()},
    "collective-order-mismatch",
    (0, 1),
    dict.fromkeys(("log", "report", "desync"), RECV_OF_LOG),
)


def candidates(report: Any) -> list[str]:
    """Without `unknown`, which stands first where nothing is sure enough to be named."""
    return [cause.id for cause in report.causes if cause.id != "unknown"]


@pytest.mark.parametrize("situation", [*HANGS, CIRCLE], ids=lambda situation: situation.name)
def test_each_source_names_the_rank_that_the_others_wait_for(
    situation: Hang, tmp_path: Path
) -> None:
    """A source that cannot carry the cause still names the rank."""
    found, causes = {}, {}
    for source, render in SOURCES.items():
        if situation is CIRCLE and source in situation.left_out:
            continue
        folder = tmp_path / source.replace(" ", "-")
        folder.mkdir()
        report = render(situation, folder)
        found[source] = (str(report.verdict), sorted(report.causes[0].ranks))
        if source not in situation.left_out:
            causes[source] = candidates(report)[0]
    verdict = {source: "crashed" if source in situation.over else "hung" for source in found}
    assert found == {source: (verdict[source], list(situation.ranks)) for source in found}
    assert causes == dict.fromkeys(causes, situation.cause)
    assert len(causes) > 2


@pytest.mark.parametrize(
    "situation",
    [hang for hang in HANGS if hang.cause == "rank-stuck" and hang.ranks != (0,)],
    ids=lambda hang: hang.name,
)
def test_a_log_in_which_a_rank_is_silent_has_its_standing_still_among_the_candidates(
    situation: Hang, tmp_path: Path
) -> None:
    """Of rank 0 a log is taken to show a long task of its own: it saves and evaluates alone."""
    for source in ("log", "report"):
        folder = tmp_path / source
        folder.mkdir()
        assert "rank-stuck" in candidates(SOURCES[source](situation, folder))


def test_ras_tells_a_wait_for_a_kernel_of_ones_own_from_a_wait_for_the_others() -> None:
    """All ranks wait for the GPU by their stacks; rank 2 has not launched what the others have."""
    found = {}
    for launched in (3, 2):
        rows = [
            {"rank": one, "pid": 100 + one, "counts": {"AllReduce": 3 if one != 2 else launched}}
            for one in range(RANKS)
        ]
        asked = Records(CELL).add(
            "ras", {"communicators": [{"hash": "0xae", "size": RANKS, "ranks": rows}]}
        )
        stack = (MAIN, Frame("step", "/job/train.py", 88), Frame("synchronize", CUDA, 890))
        facts: list[Fact] = [job(RANKS), *asked.facts().of(RasCommunicator)]
        for number in range(RANKS):
            facts += rank_facts(number, stack, stack)
        report = judge(Facts(join_threads(join_launched_calls(facts))), built(), load_priors())
        assert report.verdict == "hung"
        found[launched] = (report.suspects[0].how, report.suspects[0].ranks)
    assert found == {3: ("stuck-inside", (0, 1, 2, 3)), 2: ("never-joined", (2,))}
