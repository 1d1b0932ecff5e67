"""Columns that the Trainer took away, as the witness tells it, and what was raised for want of
one.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.facts.records import SITE, Records
from trainprobe import causes
from trainprobe.causes.priors import load_priors
from trainprobe.facts import ColumnsRemoved
from trainprobe.judge import judge
from trainprobe.model.diagnosis import Diagnosis

COLLATED = (
    '  File "/job/train.py", line 14, in collate\n    return [one["{key}"] for one in rows]\n'
)
FETCHED = (
    f'  File "{SITE}torch/utils/data/_utils/fetch.py", line 54, in fetch\n    return'
    " self.collate_fn(data)\n"
)
WRAPPED = (
    f'  File "{SITE}transformers/trainer_utils.py", line 1012, in __call__\n    return'
    " self.data_collator(features)\n"
)


def in_worker(error: str, *, key: str, wrapped: bool = False) -> str:
    """What a rank prints whose loader worker raised: the frames of the Trainer are not in the
    worker's own traceback.
    """
    worker = (
        "Traceback (most recent call"
        f" last):\n{FETCHED}{WRAPPED if wrapped else ''}{COLLATED.format(key=key)}{error}\n"
    )
    kind = error.partition(":")[0]
    rank = (
        'Traceback (most recent call last):\n  File "/job/train.py", line 40, in main\n   '
        f" trainer.train()\n{kind}: "
    )
    return f"{rank}Caught {kind} in DataLoader worker process 0.\nOriginal {worker}\n"


def case(
    printed: str, removed: list[str] | None, kept: list[str], *, empty: float | None = None
) -> Records:
    records = Records("")
    records.add(
        "plan",
        {
            "command": "diagnose",
            "nproc": 1,
            "form": "launch",
            "argv": ["train.py"],
            "cwd": "/job",
            "script": "/job/train.py",
            "dataset": "t.py:d",
        },
    )
    if empty is not None:
        records.cell = "scaled_dataset@1"
        records.events(
            {
                "event": "measure",
                "name": "dataset.empty_samples",
                "at": 1.0,
                "rank": None,
                "seq": 1,
                "value": empty,
                "unit": "",
                "where": "parent",
            },
            {"event": "result", "answer": "yes", "says": "", "at": 2.0, "rank": None, "seq": 2},
        )
    records.cell = "user_script@1"
    told: dict[str, Any] = {
        "event": "note",
        "name": "columns.removed",
        "says": "",
        "at": 1.0,
        "rank": 0,
        "seq": 1,
        "pid": 60,
    }
    records.events(
        {**told, "removed": removed, "kept": kept, "of": "Training"}, rank=0, role="rank"
    )
    records.ended(0, 1001.0, code=1).printed(printed, rank=0)
    return records.add(
        "rung",
        {
            "rung": 100,
            "probe": "user_script",
            "cell": "user_script@1",
            "nproc": 1,
            "outcome": "crashed",
            "says": "rank 0 ended",
        },
    )


def judged(records: Records) -> Diagnosis:
    return judge(records.facts(), causes.built(), load_priors())


def test_what_the_witness_tells_becomes_a_fact() -> None:
    (one,) = case("", ["passage"], ["label"]).facts().of(ColumnsRemoved)
    assert (one.rank, one.pid, one.removed, one.kept, one.of, one.by_sample) == (
        0,
        60,
        ("passage",),
        ("label",),
        "Training",
        False,
    )
    (one,) = case("", None, ["label"]).facts().of(ColumnsRemoved)
    assert (one.removed, one.by_sample) == ((), True)


@pytest.mark.parametrize(
    "error", ["KeyError: 'passage'", "ValueError: a row without 'passage' came in"]
)
def test_a_worker_that_asks_for_a_column_that_was_taken_away_is_no_bad_sample(error: str) -> None:
    found = judged(case(in_worker(error, key="passage"), ["passage", "id"], ["label"], empty=0.0))
    first = found.causes[0]
    assert (found.verdict, first.id, first.named, first.ranks) == (
        "crashed",
        "trainer-removed-columns",
        True,
        (),
    )
    assert "dropped the column passage" in first.summary
    assert {"suspects-log", "probe-outcome"} <= {one.family for one in first.because}
    assert "remove_unused_columns=False" in first.fixes[0].steps[0]
    assert "bad-sample" not in {cause.id for cause in found.causes if cause.confidence > 0.05}


def test_a_key_that_no_row_ever_had_is_not_laid_to_the_trainer() -> None:
    found = judged(case(in_worker("KeyError: 'weight'", key="weight"), ["passage"], ["label"]))
    assert found.causes[0].id == "bad-sample"
    assert "trainer-removed-columns" not in {
        cause.id for cause in found.causes if cause.points > 0 and cause.because
    }


def test_samples_that_lose_columns_one_by_one_are_told_with_less_certainty() -> None:
    found = judged(
        case(
            in_worker("KeyError: 'passage'", key="passage", wrapped=True),
            None,
            ["input_ids", "label"],
        )
    )
    (one,) = [cause for cause in found.causes if cause.id == "trainer-removed-columns"]
    assert (found.causes[0].id, max(weighing.points for weighing in one.because)) == (
        "trainer-removed-columns",
        13,
    )
    kept = judged(
        case(
            in_worker("KeyError: 'label'", key="label", wrapped=True), None, ["input_ids", "label"]
        )
    )
    assert "keeps only" not in " ".join(
        weighing.says for cause in kept.causes for weighing in cause.because
    )


def test_empty_samples_count_where_columns_were_seen_to_go() -> None:
    error = (
        "ValueError: You should supply an encoding or a list of encodings to this method that"
        " includes input_ids, but you provided ['label']"
    )
    found = judged(case(in_worker(error, key="x"), ["passage"], ["label"]))
    assert found.causes[0].id == "trainer-removed-columns"
