"""Logs from the file to the verdict: who failed first, who only repeats it, who never came."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.waits.logs_by_hand import TOLD, Told
from trainprobe.model.diagnosis import Report
from trainprobe.pipelines import explain


def explained(files: dict[str, str], folder: Path) -> Report:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return explain([str(folder / name) for name in files])


@pytest.mark.parametrize("told", TOLD, ids=lambda told: told.name.replace(" ", "-"))
def test_a_log_is_judged(told: Told, tmp_path: Path) -> None:
    report = explained(told.files, tmp_path)
    assert report.verdict == told.verdict, report.says
    assert told.says in report.says
    if told.ranks is not None:
        assert report.suspects[0].ranks == told.ranks
    if told.verdict in ("healthy", "undetermined"):
        assert not report.suspects
        assert not report.causes
    if told.cause:
        assert report.causes[0].id == told.cause, [
            (cause.id, cause.points) for cause in report.causes
        ]


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("RuntimeError: DataLoader worker (pid 77) is killed by", "data-worker-crash"),
        ("RuntimeError: CUDA Error: out of memory at /src/alloc.cpp:9", "cuda-oom"),
    ],
)
def test_a_message_that_is_cut_or_spelled_otherwise(line: str, cause: str, tmp_path: Path) -> None:
    text = f"""Traceback (most recent call last):
  File "/home/kim/train.py", line 30, in step
    loss = model(batch)
{line}
"""
    report = explained({"job.txt": text}, tmp_path)
    assert (report.verdict, report.causes[0].id) == ("crashed", cause)


def test_a_tracker_that_tries_again_is_no_crash(tmp_path: Path) -> None:
    text = "step 10 loss 2.1\nstep 20 loss 2.0\nwandb: Network error (ConnectionError), entering retry loop.\n"
    report = explained({"job.txt": text}, tmp_path)
    assert report.verdict == "undetermined"
    assert all(cause.confidence < 0.5 for cause in report.causes), report.causes
