"""The signatures of data loading, processes, software and models: each matches its example, none
its look-alikes.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

from trainprobe.shipped import shipped
from trainprobe.signatures import Signature, all_signatures, match_line

FILES = ("data_loading", "processes", "software", "model")
ROWS: list[dict[str, Any]] = [
    row for name in FILES for row in shipped("trainprobe.signatures", f"{name}.yaml")
]
# Python's own parser of patterns knows every repetition; it moved in 3.11.
PARSER: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
BY_ID = {signature.id: signature for signature in all_signatures()}


def signature(row: dict[str, Any]) -> Signature:
    return BY_ID[row["id"]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_the_example_matches_and_look_alikes_do_not(row: dict[str, Any]) -> None:
    mine = signature(row)
    assert mine.example, "an example is a line of our own"
    assert mine.id in [hit.signature.id for hit in match_line(mine.example)]
    for line in mine.unlike:
        assert any(text in line for text in mine.has), "a look-alike must wake the pattern"
        assert mine.id not in [hit.signature.id for hit in match_line(line)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_literals_are_long_enough_and_repetitions_bounded(row: dict[str, Any]) -> None:
    mine = signature(row)
    assert min(len(text) for text in mine.has) >= 6
    assert mine.source
    endless = [
        low
        for _, low, high in _repeats(PARSER.parse(mine.regex.pattern))
        if high == PARSER.MAXREPEAT
    ]
    assert not endless, f"{mine.id} repeats without a bound"


def _repeats(tree: Any) -> list[tuple[Any, int, Any]]:
    found: list[tuple[Any, int, Any]] = []
    for op, value in tree:
        if str(op) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            found += [(op, value[0], value[1]), *_repeats(value[2])]
        elif str(op) == "SUBPATTERN":
            found += _repeats(value[3])
        elif str(op) == "BRANCH":
            for branch in value[1]:
                found += _repeats(branch)
        elif str(op) in ("ASSERT", "ASSERT_NOT"):
            found += _repeats(value[1])
    return found


HEALTHY = [
    "{'loss': 0.4123, 'grad_norm': 1.2, 'learning_rate': 2e-05, 'epoch': 0.4}",
    "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
    "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
    "number of skipped iterations:   0 | number of nan iterations:   0 |",
    "Epoch 3: 100%|##########| 500/500 [01:00<00:00,  8.3it/s, loss=0.21]",
    "wandb: Tracking run with wandb version 0.19.5",
    "Loading checkpoint shards: 100%|##########| 4/4 [00:07<00:00,  1.9s/it]",
    "All keys matched successfully",
    "Saving model checkpoint to runs/checkpoint-500",
    "Downloading data from https://hub.example/files/a.parquet",
]


@pytest.mark.parametrize("line", HEALTHY)
def test_a_healthy_line_is_no_failure(line: str) -> None:
    mine = {row["id"] for row in ROWS}
    assert [
        hit.signature.id
        for hit in match_line(line)
        if hit.signature.id in mine and hit.signature.means == "fatal"
    ] == []
