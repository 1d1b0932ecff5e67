"""A cell that computes in silence until it is ended: it is told as work, and the smaller cells
say of what it grew.
"""

from __future__ import annotations

from typing import Any

import pytest

from trainprobe.causes import built
from trainprobe.causes.priors import load_priors
from trainprobe.facts.rows import facts_from_rows
from trainprobe.judge import judge
from trainprobe.model.diagnosis import Diagnosis

PLACE = "/job/train.py"
Row = dict[str, Any]


def passed(rows: int, first_step_s: float) -> list[Row]:
    cell = f"user_script@2x{rows}"
    rung = {
        "cell": cell,
        "rung": 100,
        "probe": "user_script",
        "nproc": 2,
        "rows": rows,
        "outcome": "passed",
        "evidence": ["E1"],
    }
    labels = {"rows": rows, "ranks": 2}
    fact = {
        "cell": cell,
        "probe": "user_script",
        "name": "first_step_s",
        "value": first_step_s,
        "unit": "s",
        "labels": labels,
        "evidence": ["E2"],
    }
    return [{"Rung": rung}, {"Measured": fact}]


def ended(
    rows: int,
    *,
    outgrown: bool = True,
    moved: tuple[bool, bool] = (True, True),
    leaf: str = "python-run",
    text: str = "",
) -> list[Row]:
    cell = f"user_script@2x{rows}"
    rung = {
        "cell": cell,
        "rung": 100,
        "probe": "user_script",
        "nproc": 2,
        "rows": rows,
        "outcome": "timed_out",
        "outgrown": outgrown,
        "evidence": ["E3"],
    }
    found: list[Row] = [
        {
            "Rung": {
                **rung,
                "silent_s": 30.0,
                "elapsed_s": 31.0,
                "stopped_because": "first_output",
                "says": "no progress",
            }
        }
    ]
    for rank in (0, 1):
        frame = {"name": "compare", "file": PLACE, "line": 12 + rank}
        leaf_here = leaf if rank else "python-run"
        op = "barrier" if leaf_here == "comm-wait" else ""
        where = f"train.py:{12 + rank} in compare"
        at = {"cell": cell, "rank": rank, "evidence": [f"E{4 + rank}"]}
        thread = {
            "pid": 60 + rank,
            "role": "rank",
            "source": "py-spy",
            "leaf": leaf_here,
            "op": op,
            "where": where,
            "moved": moved[rank],
            "looks": 3,
            "frames": [frame],
        }
        found += [
            {"MainThread": {**at, **thread}},
            {
                "ProcessState": {
                    **at,
                    "pid": 60 + rank,
                    "role": "rank",
                    "state": "R",
                    "cpu_moved": True,
                    "looks": 3,
                }
            },
        ]
        if text:
            block = {"kind": "while", "text": text, "line": 11}
            found.append(
                {"SourceSite": {"cell": cell, "file": PLACE, "line": 12 + rank, "blocks": [block]}}
            )
    return found


def judged(*rows: Row) -> Diagnosis:
    plan = {
        "Plan": {
            "nproc": 2,
            "form": "launch",
            "script": PLACE,
            "argv": ["train.py"],
            "probes": ["user_script"],
            "host": "node7",
        }
    }
    return judge(facts_from_rows([plan, *rows]), built(), load_priors())


@pytest.mark.parametrize(
    ("moved", "other"),
    [((True, True), "python-run"), ((False, True), "python-run"), ((True, False), "comm-wait")],
)
def test_work_in_silence_is_told_as_work_and_laid_to_its_growth(
    moved: tuple[bool, bool], other: str
) -> None:
    done = judged(*passed(1000, 1.2), *passed(2000, 2.9), *ended(4000, moved=moved, leaf=other))
    first = done.causes[0]
    assert (done.verdict, first.id, first.named, first.ranks) == (
        "hung",
        "dataset-scaling",
        True,
        (),
    )
    who = "Rank 0 computes" if other == "comm-wait" else "Ranks 0 and 1 compute"
    assert (
        done.says
        == f"{who} in silence for 30 s at train.py:12 in compare, where 2 k rows needed 2.9 s."
    )
    assert "1.2 s for 1 k rows, 2.9 s for 2 k rows, and more than 31 s for 4 k" in first.summary
    assert max(one.points for one in first.because) == 26


def test_where_the_smaller_cells_did_not_grow_it_is_only_likely() -> None:
    done = judged(*passed(1000, 1.2), *passed(2000, 1.2), *ended(4000))
    assert [one.points for one in done.causes[0].because if one.family == "probe-outcome"] == [13]


def test_ranks_that_wait_do_not_compute_whatever_the_cell_was_ended_for() -> None:
    done = judged(*passed(1000, 1.2), *passed(2000, 2.9), *ended(4000, moved=(False, False)))
    assert "in silence" not in done.says
    assert "dataset-scaling" not in {cause.id for cause in done.causes if cause.named}


def test_a_cell_that_was_ended_for_standing_still_is_no_work() -> None:
    done = judged(*passed(1000, 1.2), *passed(2000, 2.9), *ended(4000, outgrown=False))
    assert "in silence" not in done.says


def test_a_loop_without_an_end_is_not_laid_to_the_data() -> None:
    done = judged(*passed(1000, 1.2), *passed(2000, 2.9), *ended(4000, text="while True:"))
    assert "dataset-scaling" not in {cause.id for cause in done.causes if cause.named}


def test_without_smaller_cells_it_is_told_and_nothing_is_laid_to_the_data() -> None:
    done = judged(*ended(4000))
    assert done.says == "Ranks 0 and 1 compute in silence for 30 s at train.py:12 in compare."
    assert "dataset-scaling" not in {cause.id for cause in done.causes if cause.named}
