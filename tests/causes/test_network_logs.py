"""Logs of start-up and communication, from the file to the cause: several versions and frameworks, most of them fragments without a rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.causes.network_logs import LOGS
from trainprobe.pipelines import explain


@pytest.mark.parametrize(("cause", "name", "text"), LOGS, ids=[f"{cause}-{name}".replace(" ", "-") for cause, name, _ in LOGS])
def test_the_cause_stands_first(cause: str, name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(f"{text}\n", encoding="utf-8")

    report = explain(str(path))

    assert report.causes, (name, report.says)
    assert report.causes[0].id == cause, [(one.id, one.points) for one in report.causes]
    assert cause == "unknown" or report.causes[0].named, [(one.id, one.points) for one in report.causes]
    assert all(fix.steps for fix in report.causes[0].fixes)


@pytest.mark.parametrize("cause", sorted({cause for cause, _, _ in LOGS} - {"unknown"}))
def test_ranks_before_the_lines_change_nothing(cause: str, tmp_path: Path) -> None:
    text = next(text for one, _, text in LOGS if one == cause)
    path = tmp_path / "job.log"
    path.write_text("".join(f"[rank3]: {line}\n" for line in text.splitlines()), encoding="utf-8")

    report = explain(str(path))

    assert report.causes[0].id == cause, [(one.id, one.points) for one in report.causes]
