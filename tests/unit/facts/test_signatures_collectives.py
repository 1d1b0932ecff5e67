"""Wordings of collectives, endings, schedulers and frameworks over their versions: what they
show, and what a fragment that holds them comes to.
"""

from __future__ import annotations

import pytest

from trainprobe.pipelines import explain
from trainprobe.signatures import find, match_line

W = "Watchdog caught collective operation timeout: "
DUMP = (
    "and we will try our best to dump the debug info. Last enqueued NCCL work: 77, last completed"
    " NCCL work: 77.This is most likely"
)

# (a line as some version prints it, what it shows, what is captured)
LINES = [
    (
        f"[Rank 5] {W}WorkNCCL(OpType=BROADCAST, Timeout(ms)=1800000) ran for 1802691 milliseconds",
        "collective-timeout",
        {"rank": "5", "op": "BROADCAST"},
    ),
    (
        (
            f"[Rank 0] {W}WorkNCCL(SeqNum=9, OpType=ALLREDUCE, TensorShape=[8, 4],"
            " Timeout(ms)=600000) ran for 600100 milliseconds"
        ),
        "collective-timeout",
        {"seq": "9"},
    ),
    (
        (
            f"{W}WorkNCCL(SeqNum=9, OpType=_ALLGATHER_BASE, NumelIn=4, NumelOut=8,"
            " Timeout(ms)=60000) ran for 60100 milliseconds"
        ),
        "collective-timeout",
        {"numel_out": "8"},
    ),
    (
        (
            "[Rank 2] Work WorkNCCL(SeqNum=3, OpType=BARRIER, NumelIn=1, NumelOut=1,"
            " Timeout(ms)=60000) timed out in blocking wait."
        ),
        "collective-timeout",
        {"op": "BARRIER"},
    ),
    (
        (
            "[Rank 1] Caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE,"
            " Timeout(ms)=1800000) ran for 1800100 milliseconds"
        ),
        "collective-timeout",
        {"rank": "1"},
    ),
    (
        (
            "[PG 0 Rank 1] Timeout at NCCL work: 7, last enqueued NCCL work: 8, last completed NCCL"
            " work: 6."
        ),
        "nccl-last-work",
        {"seq": "7", "enqueued": "8", "completed": "6"},
    ),
    (
        (
            "[PG 2 Rank 4] Exception (either an error or timeout) detected by watchdog at work: 31,"
            " last enqueued NCCL work: 58, last completed NCCL work: 30."
        ),
        "nccl-last-work",
        {"group": "2", "rank": "4", "seq": "31"},
    ),
    (
        (
            "[PG ID 0 PG GUID 0(default_pg) Rank 4] Received a dump signal due to a collective"
            f" timeout from  rank 1 {DUMP}"
        ),
        "dump-signal",
        {"me": "4", "rank": "1", "enqueued": "77"},
    ),
    (
        f"Received a dump signal due to a collective timeout from this local rank {DUMP}",
        "dump-signal",
        {"completed": "77"},
    ),
    (
        "     [1, 2] finished collective #41, but didn't join collective #42 (count from 1)",
        "desync-rank",
        {"ranks": "1, 2", "missed": "42"},
    ),
    (
        "   - [0] joined but didn't finish collective #42 (count from 1)",
        "desync-rank",
        {"ranks": "0", "unfinished": "42"},
    ),
    (
        "RuntimeError: [Rank 0]: Rank 3 timed out in monitoredBarrier after 30000 ms.",
        "barrier-timeout",
        {"ranks": "3"},
    ),
    (
        (
            "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running"
            " inconsistent collective: CollectiveFingerPrint(OpType=GATHER"
        ),
        "collective-mismatch",
        {"rank": "1"},
    ),
    (
        "Parameter at index 5 has been marked as ready twice. This means",
        "ddp-ready-twice",
        {"index": "5"},
    ),
    (
        "Parameters which did not receive grad for rank 1: a.weight, a.bias",
        "ddp-unused-parameters",
        {"indices": "a.weight, a.bias"},
    ),
    (
        (
            "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal"
            " SIGKILL"
        ),
        "process-ended",
        {"local_rank": "2", "signal": "SIGKILL"},
    ),
    (
        "  traceback : Signal 11 (SIGSEGV) received by PID 77",
        "process-ended",
        {"name": "SIGSEGV", "pid": "77"},
    ),
    (
        "['/env/bin/python', '-u', 'a.py', '--local_rank=3'] exits with return code = -9",
        "process-ended",
        {"code": "-9"},
    ),
    (
        (
            "prterun noticed that process rank 1 with PID 42 on node n1 exited on signal 11"
            " (Segmentation fault)."
        ),
        "process-ended",
        {"rank": "1", "host": "n1"},
    ),
    ("srun: error: n1: tasks 0-3: Killed", "process-ended", {"task": "0", "signal": "Killed"}),
    (
        "./go.sh: line 9:   120 Bus error               (core dumped) python a.py",
        "process-ended",
        {"pid": "120", "signal": "Bus error"},
    ),
    (
        "slurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2031-02-03T04:05:06 DUE TO PREEMPTION ***",
        "preempted",
        {"reason": "PREEMPTION"},
    ),
    (
        "error: *** STEP 8.0 ON n1 CANCELLED DUE TO TIME LIMIT ***",
        "preempted",
        {"reason": "TIME LIMIT"},
    ),
    ("  Total optimization steps = 0", "no-steps", {}),
    ("`Trainer.fit` stopped: No training batches.", "no-steps", {}),
]
# Lines of healthy jobs, or of another trouble, that must show none of these.
HEALTHY = [
    "  Num examples = 5,120",
    "loaded 5120 samples from 64 shards",
    "INFO epoch 3: training done on 400 batches, 0.5 s each",
    "NCCL INFO comm 0x55 rank 3 nranks 8 - Init COMPLETE",
    (
        "[Rank 3] NCCL watchdog thread terminated with exception: CUDA error: an illegal memory"
        " access was encountered"
    ),
    "step 100: saved nothing, enqueued 3 uploads",
    "Process 42 exits after its warm-up",
]
FAILED = {
    "collective-timeout",
    "nccl-last-work",
    "dump-signal",
    "process-ended",
    "preempted",
    "no-steps",
    "watchdog-ends-process",
    "collective-mismatch",
    "inputs-exhausted",
}


@pytest.mark.parametrize(("line", "shows", "captured"), LINES)
def test_each_version_of_a_wording_is_read(line: str, shows: str, captured: dict[str, str]) -> None:
    found = [hit for hit in find(line) if hit.signature.shows == shows]

    assert found, [hit.signature.id for hit in find(line)]
    assert captured.items() <= dict(found[0].captured).items()


@pytest.mark.parametrize("line", HEALTHY)
def test_healthy_lines_show_no_failure(line: str) -> None:
    assert not {hit.signature.shows for hit in match_line(line)} & FAILED


def work(rank: int, seq: int, op: str, numel: int, ms: int = 600000) -> str:
    return (
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:629] [Rank {rank}] {W}WorkNCCL(SeqNum={seq},"
        f" OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)={ms}) ran for {ms + 21}"
        " milliseconds before timing out."
    )


def prints(rank: int, op: str, shape: str) -> str:
    return (
        f"Rank {rank} is running collective: CollectiveFingerPrint(SequenceNumber=40, OpType={op},"
        f" TensorShape=[{shape}], TensorDtypes=Float)"
    )


# (name, fragment, the cause that comes first)
FRAGMENTS = [
    (
        "sizes",
        [work(0, 311, "ALLREDUCE", 4096), work(1, 311, "ALLREDUCE", 3968)],
        "collective-shape-mismatch",
    ),
    (
        "one in another call",
        [work(0, 7, "BROADCAST", 10), *(work(rank, 7, "ALLREDUCE", 4096) for rank in (1, 2, 3))],
        "rank-conditional-collective",
    ),
    (
        "crossed",
        [
            work(0, 7, "ALLREDUCE", 100),
            work(0, 8, "BROADCAST", 20),
            work(1, 7, "BROADCAST", 20),
            work(1, 8, "ALLREDUCE", 100),
        ],
        "collective-order-mismatch",
    ),
    (
        "layers",
        [work(0, 9, "_ALLGATHER_BASE", 2097152), work(1, 9, "_REDUCE_SCATTER_BASE", 4194304)],
        "rank-divergent-forward",
    ),
    (
        "trace",
        [
            "Invalidate trace cache @ step 3: expected module 25, but got module 31",
            work(1, 9, "_ALLGATHER_BASE", 2097152),
        ],
        "rank-divergent-forward",
    ),
    (
        "layers told",
        [
            (
                "RuntimeError: Detected mismatch between collectives on ranks."
                f" {prints(0, '_ALLGATHER_BASE', '256')}, but {prints(1, '_ALLGATHER_BASE', '64')}"
            )
        ],
        "rank-divergent-forward",
    ),
    (
        "shapes told",
        [
            (
                "RuntimeError: Detected mismatch between collectives on ranks."
                f" {prints(0, 'ALLREDUCE', '6')}, but {prints(1, 'ALLREDUCE', '7')}"
            )
        ],
        "collective-shape-mismatch",
    ),
    (
        "bar",
        [
            work(1, 2, "ALLREDUCE", 1),
            (
                "Running tokenizer on dataset (num_proc=4):  61%|██████    | 610/1000 [29:41<18:58,"
                " 0.4 examples/s]"
            ),
        ],
        "rank0-long-task",
    ),
    ("one barrier at the start, and no more", [work(7, 1, "ALLREDUCE", 1)], "unknown"),
    (
        "short, and the work went on",
        [work(1, 400, "ALLREDUCE", 4096, ms=30000), "[rank0] step 41/900 loss 1.1"],
        "timeout-too-short",
    ),
    (
        "lagging",
        [
            work(0, 78, "ALLREDUCE", 4096),
            "   - [2] finished collective #77, but didn't join collective #78 (count from 1)",
        ],
        "rank-stuck",
    ),
    ("bare", [work(0, 81231, "ALLREDUCE", 4096), work(1, 81231, "ALLREDUCE", 4096)], "unknown"),
    (
        "join",
        [
            (
                "RuntimeError: Detected at least one rank that exhausted inputs. Throwing across "
                "all"
                " ranks."
            )
        ],
        "uneven-inputs",
    ),
    (
        "twice",
        [
            (
                "RuntimeError: Expected to mark a variable ready only once. This error is caused "
                "by one"
                " of the following reasons:"
            )
        ],
        "ddp-marked-ready-twice",
    ),
    (
        "unused",
        ["Parameter indices which did not receive grad for rank 3: 201 202"],
        "ddp-unused-parameters",
    ),
    (
        "time limit",
        [
            (
                "slurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2031-02-03T04:05:06 DUE TO TIME"
                " LIMIT ***"
            )
        ],
        "preempted-or-hangup",
    ),
    (
        "told to end",
        [
            (
                "torch.distributed.elastic.multiprocessing.api.SignalException: Process 33 got"
                " signal: 15"
            )
        ],
        "preempted-or-hangup",
    ),
    ("no batches", ["`Trainer.fit` stopped: No training batches."], "no-steps-run"),
    (
        "resumed at its end",
        [
            "  Continuing training from global step 1000",
            "{'train_runtime': 0.01, 'train_loss': 0.0, 'epoch': 3.0}",
        ],
        "no-steps-run",
    ),
    (
        "timer",
        [
            "Reaping worker_id=[44]. Expired timers: save",
            "failed (exitcode: -9) local_rank: 1 (pid: 44) of binary: /bin/python",
        ],
        "rank-killed",
    ),
    (
        "only Ctrl-C",
        [
            "Traceback (most recent call last):",
            '  File "/job/a.py", line 7, in <module>',
            "    work()",
            "KeyboardInterrupt",
        ],
        "unknown",
    ),
    (
        "a plain error",
        [
            "Traceback (most recent call last):",
            '  File "/job/a.py", line 7, in <module>',
            "    x = d['k']",
            "KeyError: 'k'",
        ],
        "user-exception",
    ),
]


@pytest.mark.parametrize(
    ("fragment", "first"),
    [(lines, first) for _, lines, first in FRAGMENTS],
    ids=[name for name, _, _ in FRAGMENTS],
)
def test_a_fragment_comes_to_its_cause(
    fragment: list[str], first: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("logs") / "out.txt"
    path.write_text("\n".join(fragment) + "\n", encoding="utf-8")

    report = explain([str(path)])

    assert next(iter(report.causes)).id == first, [
        (cause.id, cause.points) for cause in report.causes
    ]


def test_a_bare_timeout_says_what_the_next_run_must_record(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("logs") / "out.txt"
    path.write_text(work(2, 81231, "ALLREDUCE", 4096) + "\n", encoding="utf-8")

    report = explain([str(path)])

    steps = " ".join(step for fix in report.causes[0].fixes for step in fix.steps)
    assert report.causes[0].id == "unknown"
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" in steps
    assert "trainprobe attach" in steps
    assert {cause.id for cause in report.causes[1:]} >= {
        "rank-stuck",
        "rank-conditional-collective",
    }
