"""Trees of torchrun's --log-dir and the output beside them agree on which attempt everything
belongs to.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.logs.test_gathering import evidence, extracts, write
from trainprobe.logs.lines import Line
from trainprobe.logs.reading import Attempt, ReadFile
from trainprobe.logs.timeline import split_at_restarts
from trainprobe.model.diagnosis import Report
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain

TRACE = [
    "Traceback (most recent call last):",
    '  File "/w/fit.py", line 8, in fit',
    '    batch["mask"]',
    "KeyError: 'mask'",
]
STEPS = [f"step {step}/4 loss 0.{9 - step}" for step in range(1, 5)]


def lost(rank: int, agent: int, second: int) -> str:
    place = "torch/distributed/elastic/multiprocessing/api.py:882"
    return (
        f"E1121 10:00:{second:02}.000000 {agent} {place}] failed (exitcode: 1) local_rank: {rank}"
        f" (pid: 9{rank}) of binary: python"
    )


def tee(rank: int, lines: list[str]) -> list[str]:
    return [f"[default{rank}]:{line}" for line in lines]


def error(rank: int, at: int) -> str:
    extra = {"py_callstack": "\n".join(TRACE), "timestamp": str(at)}
    return json.dumps({"message": {"message": f"KeyError: 'mask' {rank}", "extraInfo": extra}})


def tree(tmp_path: Path, last: list[str], *, fails: bool) -> Path:
    """A job of two ranks whose rank 1 raised in its first attempt; the second one says `last`."""
    ends = (
        [
            lost(1, 70, 9),
            *TRACE[:1],
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        ]
        if fails
        else []
    )
    files: dict[str, str | bytes] = {
        "job.log": (
            "\n".join(
                [
                    *tee(1, [*STEPS[:2], *TRACE]),
                    *tee(0, STEPS[:2]),
                    lost(1, 70, 3),
                    *tee(1, last),
                    *tee(0, STEPS),
                    *ends,
                ]
            )
            + "\n"
        ),
        "logs/none_x/attempt_0/0/stdout.log": "\n".join(STEPS[:2]) + "\n",
        "logs/none_x/attempt_0/1/stdout.log": "\n".join(STEPS[:2]) + "\n",
        "logs/none_x/attempt_0/1/stderr.log": "\n".join(TRACE) + "\n",
        "logs/none_x/attempt_0/1/error.json": error(1, 1_790_000_000),
        "logs/none_x/attempt_1/0/stdout.log": "\n".join(STEPS) + "\n",
        "logs/none_x/attempt_1/1/stdout.log": "\n".join(last) + "\n",
        "logs/none_x/attempt_1/1/stderr.log": "",
        **({"logs/none_x/attempt_1/1/error.json": error(1, 1_790_000_009)} if fails else {}),
    }
    write(tmp_path / "job", files)
    return tmp_path / "job"


def judged(tmp_path: Path, folder: Path) -> tuple[Report, list[dict[str, Any]]]:
    report = explain(
        ExplainRequest(
            paths=(str(folder),), case=str(tmp_path / "case"), argv=("trainprobe", "explain")
        )
    )
    return report, evidence(tmp_path / "case")


def cells(rows: list[dict[str, Any]], kind: str) -> dict[str, str]:
    return {
        row["data"]["path"].partition("/job/")[2]: row["cell"]
        for row in rows
        if row["kind"] == kind
    }


def test_a_job_whose_second_attempt_finished_is_healthy_and_the_first_failure_is_told(
    tmp_path: Path,
) -> None:
    report, rows = judged(tmp_path, tree(tmp_path, [*STEPS, "Training completed"], fails=False))
    assert cells(rows, "error_file") == {"logs/none_x/attempt_0/1/error.json": "attempt-0"}
    teed = [
        (row["cell"], row["data"]["last_line"])
        for row in rows
        if row["kind"] == "log.extract" and row["data"]["path"].endswith("job.log")
    ]
    assert teed == [("attempt-0", 9), ("job", 18)]
    assert str(report.verdict) == "healthy"
    assert not [one.id for one in report.causes]
    assert any("attempt-0" in says and "KeyError" in says for says in report.unexplained)


def test_a_job_that_failed_in_both_attempts_is_judged_by_the_last(tmp_path: Path) -> None:
    report, rows = judged(tmp_path, tree(tmp_path, [*STEPS[:1], *TRACE], fails=True))
    assert cells(rows, "error_file") == {
        "logs/none_x/attempt_0/1/error.json": "attempt-0",
        "logs/none_x/attempt_1/1/error.json": "job",
    }
    assert str(report.verdict) == "crashed"
    assert [one.id for one in report.causes][:1] == ["user-exception"]
    assert tuple(report.causes[0].ranks) == (1,)


def test_an_error_file_outside_any_attempt_is_of_the_last_one(tmp_path: Path) -> None:
    folder = tree(tmp_path, [*STEPS[:1], *TRACE], fails=True)
    write(folder, {"error.json": error(0, 1_790_000_009)})
    _, rows = judged(tmp_path, folder)
    assert cells(rows, "error_file")["error.json"] == "job"


def parts(texts: list[str], *beside: str) -> list[tuple[int, int, int]]:
    """(number, first line, last line) of each attempt of a log with these lines."""
    rows = [Line(number, 0, text) for number, text in enumerate(texts, 1)]
    file = ReadFile(
        "job.log", what="log", lines=len(rows), attempts=[Attempt(0, 1, len(rows), rows)]
    )
    split_at_restarts([file, *(ReadFile(path) for path in beside)])
    for attempt in file.attempts:
        assert all(attempt.begins <= row.number <= attempt.last for row in attempt.rows)
    assert sum(len(attempt.rows) for attempt in file.attempts) == len(rows)
    return [(attempt.number, attempt.begins, attempt.last) for attempt in file.attempts]


def test_an_agent_that_loses_a_process_twice_has_begun_again() -> None:
    assert parts(["a", lost(0, 70, 1), "b", lost(1, 70, 2), "c"]) == [(0, 1, 2), (1, 3, 5)]
    assert parts(["a", lost(0, 70, 1), lost(1, 71, 2), "b", lost(0, 70, 3), lost(0, 71, 4)]) == [
        (0, 1, 3),
        (1, 4, 6),
    ]


@pytest.mark.parametrize(
    "texts",
    [
        ["a", lost(0, 70, 1), "b"],
        ["a", lost(0, 70, 1), "b", lost(1, 71, 2), "c"],  # two hosts of one attempt
        [
            "a",
            lost(0, 70, 1).split("] ", 1)[1],
            "b",
            lost(0, 70, 2).split("] ", 1)[1],
        ],  # of whom nobody says that they are one agent's
        [
            "a",
            lost(0, 70, 1),
            "b",
            lost(0, 70, 2),
            "c",
            lost(1, 71, 3),
        ],  # in no order that attempts would have
    ],
)
def test_one_attempt_stays_one(texts: list[str]) -> None:
    assert parts(texts) == [(0, 1, len(texts))]


def test_the_trees_beside_a_log_say_how_many_attempts_it_has() -> None:
    trees = ("logs/x/attempt_0/0/stdout.log", "logs/x/attempt_1/0/stdout.log")
    assert parts(["a", lost(0, 70, 1), "b"], *trees) == [(0, 1, 2), (1, 3, 3)]
    assert parts(["a", lost(0, 70, 1), "b", lost(0, 70, 2)], *trees) == [(0, 1, 2), (1, 3, 4)]
    bare = [lost(0, 70, 1).split("] ", 1)[1], "b", lost(0, 70, 2).split("] ", 1)[1]]
    assert parts(bare, *trees) == [(0, 1, 1), (1, 2, 3)]
    assert parts(["a", lost(0, 70, 1)], *trees) == [(0, 1, 2)]
    assert parts(["a", "b"], *trees) == [(0, 1, 2)]


def test_the_lines_of_each_attempt_are_in_its_cell(tmp_path: Path) -> None:
    folder = tree(tmp_path, [*STEPS, "Training completed"], fails=False)
    explain(
        ExplainRequest(
            paths=(str(folder),), case=str(tmp_path / "case"), argv=("trainprobe", "explain")
        )
    )
    rows = [row for row in extracts(tmp_path / "case") if row["data"]["path"].endswith("job.log")]
    texts = {row["cell"]: [one[4] for one in row["data"]["rows"]] for row in rows}
    assert any("KeyError" in text for text in texts["attempt-0"])
    assert not any("KeyError" in text for text in texts["job"])
    assert any("Training completed" in text for text in texts["job"])
