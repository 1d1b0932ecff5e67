"""Another name of its file or folder changes no answer: a log is recognised by its content."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from tests.gallery.logs.answers import CASES, read_answers
from tests.gallery.logs.score import judged

# Words with numbers that look like hosts, runs, ranks of other things, and dates.
NAMES = ("run1/train1/qwen25.log", "model-3/exp_7.txt", "2024-11-21/out", "node/loader_worker.log")


def single_logs() -> list[Path]:
    """Cases of one file: several files of a job do tell their ranks by their names."""
    alone = []
    for answer in read_answers():
        files = [path for path in (CASES / answer.case).rglob("*") if path.is_file()]
        if len(files) == 1:
            alone += files
    return alone


def _of_the_quick_part(log: Path) -> bool:
    return hashlib.sha256(f"name {log.parent.name}".encode()).digest()[0] % 24 == 0


@pytest.mark.parametrize("every", [False, True], ids=["some", "all"])
def test_a_name_changes_no_answer(every: bool, tmp_path: Path) -> None:
    logs = [log for log in single_logs() if every or _of_the_quick_part(log)]
    assert len(logs) >= 15
    for log in logs:
        answers = {}
        for name in ("log.txt", *NAMES):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(log, path)
            answers[name] = judged([str(path)])
            os.unlink(path)
        assert len({str(answer) for answer in answers.values()}) == 1, (log.parent.name, answers)
