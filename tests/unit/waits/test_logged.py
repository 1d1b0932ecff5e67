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
