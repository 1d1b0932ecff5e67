"""Diagnoses made by hand, one for each kind of answer; the golden texts beside them were read
before they were accepted.
"""

from __future__ import annotations

from dataclasses import replace

from trainprobe.model.diagnosis import (
    Cascade,
    Diagnosis,
    Fix,
    LadderRow,
    Link,
    Measure,
    PlacedCause,
    RankRow,
    Report,
    RuledOut,
    StackClass,
    Stacks,
    Suspect,
    Tool,
    Undecided,
    Weighing,
    World,
)
from trainprobe.report.json_report import report_of

HOST = LadderRow(
    10,
    "host",
    "passed",
    0.41,
    question="Do this host's limits, memory and disk allow the run?",
    cell="host@1",
    nproc=1,
)
ENVIRONMENT = LadderRow(
    20,
    "environment",
    "passed",
    1.2,
    question="Do the interpreter, torch, CUDA and the driver fit each other?",
    cell="environment@1",
    nproc=1,
)
GPU = LadderRow(
    40,
    "basic_cuda",
    "skipped",
    says="no GPU on this machine (NVML: libnvidia-ml.so.1 is not there)",
    question="Does every GPU compute?",
    cell="basic_cuda@1",
)
GLOO = LadderRow(
    50,
    "gloo_control",
    "passed",
    2.14,
    measures=(Measure("init_s", 0.3, "s", 60.0),),
    question="Do the ranks reach each other over gloo?",
    nproc=4,
)
LADDER = (HOST, ENVIRONMENT, GPU, GLOO)


def _script(outcomes: str, says: str = "", took_s: float = 3.0) -> tuple[LadderRow, ...]:
    words = {"p": "passed", "f": "failed", "t": "timed_out", "c": "crashed"}
    question = "Does your own command take its first steps on 1, 2, 4 … ranks?"
    return tuple(
        LadderRow(
            1000,
            "user_script",
            words[letter],  # type: ignore[arg-type] # one of the literal's words
            took_s,
            ranks=(3,) if letter != "p" else (),
            says=says if letter != "p" else "",
            question=question,
            cell=f"user_script@{2**place}",
            nproc=2**place,
        )
        for place, letter in enumerate(outcomes)
    )


LOCK = PlacedCause(
    id="file-lock-held",
    title="A file lock is held by someone else",
    confidence=0.972,
    points=31,
    named=True,
    ranks=(3,),
    hosts=("node7",),
    pids=(911,),
    summary=(
        "Rank 3 (pid 48219) waits for an flock on /nfs/cache/ds.lock that pid 911 (python prep.py)"
        " holds."
    ),
    chain=(
        Link("ranks 0-2,4-7", "all_reduce #1204", "train.py:88", ("E15",)),
        Link("all_reduce #1204", "rank 3", "has not arrived", ("E15",)),
        Link("rank 3", "pid 911", "flock at cache.py:41", ("E12",)),
    ),
    because=(
        Weighing(13, "suspects-stack", "Rank 3 ends in fcntl.flock in both looks.", ("E7", "E9")),
        Weighing(
            26, "process-state-and-locks", "/proc/locks names pid 911 as the holder.", ("E12",)
        ),
        Weighing(-3, "storage", "The mount answers other readers within 2 ms.", ("E20",)),
        Weighing(
            6, "other-stacks", "The other seven are one collective ahead and wait there.", ("E15",)
        ),
    ),
    fixes=(
        Fix("See what pid 911 still does.", ("trainprobe attach 911",)),
        Fix(
            "End it.",
            ("kill 911",),
            "disruptive",
            verify="trainprobe diagnose --nproc 8 -- train.py",
        ),
        Fix(
            "Keep the lock on a local disk.",
            ("export HF_DATASETS_CACHE=/local/cache",),
            "needs-admin",
            "admin",
        ),
    ),
    docs="docs/causes/file-lock-held.md",
)
WORLD = World(
    8,
    tuple(
        RankRow(
            rank,
            "node7" if rank > 3 else "node6",
            48216 + rank,
            "waiting",
            "train.py:88",
            "rank 3",
            664.0,
        )
        for rank in range(8)
    ),
)
TOOL = Tool("trainprobe", "0.1.0")


def _report(diagnosis: Diagnosis, looked_s: float = 41.3) -> Report:
    return report_of(
        diagnosis,
        command="diagnose",
        case="./trainprobe-2026-11-21T00-10-node7",
        looked_s=looked_s,
        tool=TOOL,
    )


HUNG = _report(
    Diagnosis(
        verdict="hung",
        conclusive=True,
        says="Rank 3 on node7 holds up the other seven.",
        world=WORLD,
        suspects=(
            Suspect((3,), ("node7",), "never-joined", "Rank 3 on node7 holds up the other seven."),
        ),
        causes=(
            LOCK,
            replace(LOCK, id="storage-stall", confidence=0.012, points=3, named=False),
            replace(LOCK, id="unknown", confidence=0.004, points=0),
        ),
        cascade=(Cascade((0, 1, 2, 4, 5, 6, 7), "Ranks 0-2,4-7 wait for rank 3.", 0),),
        ruled_out=(
            RuledOut("process-stopped", "no process of the job is stopped"),
            RuledOut("gil-held", ""),
        ),
        undecided=(
            Undecided("cannot-look", "kernel log: denied; ask for membership of group adm"),
        ),
        ladder=(*LADDER, *_script("pppt", "no progress for 30 s while 8 ranks live", 14.0)),
        stacks=Stacks(
            (
                StackClass("3", ("train.py:70 main", "cache.py:41 load")),
                StackClass("0-2,4-7", ("train.py:88 main",)),
            )
        ),
        extra={"form": "launch"},
    )
)
CRASHED = _report(
    Diagnosis(
        verdict="crashed",
        conclusive=True,
        says="Rank 1 on node7 failed first.",
        world=World(4, tuple(RankRow(rank, "node7", 100 + rank, "crashed") for rank in range(4))),
        suspects=(Suspect((1,), ("node7",), "failed-first", "Rank 1 on node7 failed first."),),
        causes=(
            PlacedCause(
                "user-exception",
                "An exception in the training code",
                0.87,
                20,
                named=True,
                ranks=(1,),
                summary="Rank 1 raised KeyError: 'labels' at collate.py:12 in collate.",
                because=(
                    Weighing(
                        13,
                        "suspects-log",
                        "Rank 1 printed a traceback that ends in KeyError: 'labels' at"
                        " collate.py:12.",
                        ("E31",),
                    ),
                ),
                fixes=(
                    Fix(
                        "Look at that line, and try the sample alone.",
                        ("trainprobe diagnose --nproc 1 -- train.py",),
                    ),
                ),
            ),
            PlacedCause(
                "bad-sample", "One sample breaks batching", 0.11, 6, named=False, ranks=(1,)
            ),
        ),
        cascade=(
            Cascade((0, 2, 3), "Broke within 0.4 s with connections closed by their peer.", 0),
        ),
        ladder=(*LADDER, *_script("ppf", "rank 1 raised KeyError: 'labels'")),
        extra={"form": "command"},
    )
)
HEALTHY = _report(
    Diagnosis(
        "healthy",
        conclusive=True,
        says="All 5 checks that apply here passed.",
        world=World(4),
        ladder=(*LADDER, *_script("ppp")),
    ),
    18.2,
)
UNDETERMINED = _report(
    Diagnosis(
        verdict="undetermined",
        conclusive=False,
        says="Rung gloo_control could not be measured: the torch of /usr/bin/python3 is not there.",
        ladder=(
            HOST,
            replace(
                GLOO,
                outcome="not_measured",
                took_s=0.0,
                says="/usr/bin/python3 has no torch",
                measures=(),
            ),
        ),
        undecided=(Undecided("cannot-look", "gloo_control@4: /usr/bin/python3 has no torch"),),
        extra={"interrupted": True},
    ),
    2.0,
)
AT_RISK = _report(
    Diagnosis(
        verdict="at-risk",
        conclusive=True,
        says="The limits of this host do not carry the run.",
        world=World(4),
        causes=(
            PlacedCause(
                "fd-exhaustion",
                "The limit of open files is reached",
                0.66,
                13,
                named=True,
                summary=(
                    "4 ranks with 8 workers each need about 1900 descriptors and 1024 are allowed."
                ),
                because=(
                    Weighing(
                        13,
                        "environment-and-limits",
                        "The soft limit of open files is 1024.",
                        ("E3",),
                    ),
                ),
                fixes=(
                    Fix(
                        "Raise the limit in the shell that starts the job.",
                        ("ulimit -n 65536",),
                        verify="trainprobe diagnose --only host",
                    ),
                ),
            ),
        ),
        ladder=(
            replace(
                HOST,
                outcome="failed",
                says="The limit of open files is 1024",
                question=HOST.question,
            ),
            ENVIRONMENT,
        ),
    )
)
TWO_GROUPS = _report(
    Diagnosis(
        verdict="crashed",
        conclusive=False,
        says="Rank 3 on node7 failed first, and an import fails on its own.",
        world=World(4),
        suspects=(
            Suspect((3,), ("node7",), "failed-first", "Rank 3 failed first."),
            Suspect((), ("node7",), "failed-first", "Import of apex fails."),
        ),
        causes=(
            PlacedCause(
                "unknown",
                "Nothing in the catalogue fits",
                0.55,
                0,
                named=False,
                ranks=(3,),
                summary="Rank 3 ended with exit status 77.",
                group=0,
            ),
            PlacedCause(
                "import-failure",
                "An import fails",
                0.98,
                26,
                named=True,
                summary="import apex raises ImportError: libcudart.so.11.0.",
                group=1,
            ),
            PlacedCause(
                "rank-killed", "A rank was killed", 0.3, -3, named=False, ranks=(3,), group=0
            ),
            PlacedCause("abi-mismatch", "Built for another torch", 0.02, 3, named=False, group=1),
        ),
        undecided=(
            Undecided(
                "unknown", "python -X faulthandler train.py, and the last lines that rank 3 prints"
            ),
        ),
        unexplained=("rank 2 printed 4 lines that no signature knows",),
        ladder=(HOST, *_script("f", "rank 3 ended with exit status 77")),
    )
)
ALL = {
    "hung": HUNG,
    "crashed": CRASHED,
    "healthy": HEALTHY,
    "undetermined": UNDETERMINED,
    "at-risk": AT_RISK,
    "two-groups": TWO_GROUPS,
}
