"""A model wrapped into nn.DataParallel, as the witness tells it: when that is a trouble, when a
warning, and when neither.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.facts.records import Records, traceback_of
from trainprobe import causes
from trainprobe.causes.priors import load_priors
from trainprobe.facts import DataParallelMade
from trainprobe.judge import judge
from trainprobe.model.diagnosis import Diagnosis

TRAINER = {
    "file": "/env/lib/python3.11/site-packages/transformers/trainer.py",
    "line": 2672,
    "function": "_wrap_model",
}
USER = {"file": "/job/train.py", "line": 40, "function": "main"}


def case(
    devices: int,
    by: dict[str, Any],
    *,
    nproc: int = 1,
    pids: tuple[int, ...] = (60,),
    outcome: str = "passed",
) -> Records:
    records = Records("")
    records.add(
        "plan",
        {
            "command": "diagnose",
            "nproc": nproc,
            "form": "command",
            "argv": ["python", "train.py"],
            "cwd": "/job",
            "script": "/job/train.py",
        },
    )
    records.cell = f"user_script@{nproc}"
    for number, pid in enumerate(pids):
        told = {
            "event": "note",
            "name": "data_parallel",
            "says": "",
            "at": 1.0,
            "rank": None,
            "seq": 1,
            "pid": pid,
            "devices": devices,
            "by": by,
            "user": USER,
        }
        records.events(told, rank=number, role="rank")
    says = "" if outcome == "passed" else "rank 0 ended with exit code 1"
    return records.add(
        "rung",
        {
            "rung": 100,
            "probe": "user_script",
            "cell": records.cell,
            "nproc": nproc,
            "outcome": outcome,
            "says": says,
        },
    )


def judged(records: Records) -> Diagnosis:
    return judge(records.facts(), causes.built(), load_priors())


def test_what_the_witness_tells_becomes_a_fact() -> None:
    (made,) = case(4, TRAINER).facts().of(DataParallelMade)
    assert (made.pid, made.devices, made.unasked) == (60, 4, True)
    assert made.by is not None
    assert made.by.where == "trainer.py:2672 in _wrap_model"


def test_a_library_that_spreads_over_several_gpus_unasked_is_a_trouble_though_all_passed() -> None:
    found = judged(case(4, TRAINER))
    first = found.causes[0]
    assert (found.verdict, first.id, first.named, first.ranks) == (
        "at-risk",
        "accidental-data-parallel",
        True,
        (),
    )
    assert "over 4 GPUs" in first.summary
    assert "trainer.py:2672 in _wrap_model, for train.py:40 in main" in first.summary
    assert {one.family for one in first.because} == {
        "process-state-and-locks",
        "environment-and-limits",
    }
    assert "torchrun --nproc-per-node gpu /job/train.py" in first.fixes[0].steps[0]


@pytest.mark.parametrize(
    ("devices", "by", "more"),
    [(4, USER, {}), (1, TRAINER, {}), (4, TRAINER, {"nproc": 2, "pids": (60, 61)})],
)
def test_what_was_meant_is_none(devices: int, by: dict[str, Any], more: dict[str, Any]) -> None:
    found = judged(case(devices, by, **more))
    assert (found.verdict, found.causes, found.warnings) == ("healthy", (), ())


def test_a_line_of_ones_own_is_a_trouble_where_ranks_were_asked_for() -> None:
    found = judged(case(4, USER, nproc=4))
    assert (found.verdict, found.causes[0].id) == ("at-risk", "accidental-data-parallel")


def test_without_a_gpu_it_is_a_warning() -> None:
    found = judged(case(0, USER))
    assert found.verdict == "healthy"
    assert [(one.check, "train.py:40" in one.says) for one in found.warnings] == [
        ("script.data-parallel", True)
    ]


def test_a_crash_in_one_process_over_several_gpus_is_laid_to_it() -> None:
    records = case(4, TRAINER, outcome="crashed")
    error = traceback_of(
        "RuntimeError",
        "Caught RuntimeError in replica 1 on device 1.",
        file="/env/lib/python3.11/site-packages/torch/_utils.py",
    )
    records.ended(0, 1001.0, code=1).printed(error, rank=0)
    assert judged(records).causes[0].id == "accidental-data-parallel"
