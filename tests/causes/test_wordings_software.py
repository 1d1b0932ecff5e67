"""Pieces of logs without ranks, times or a header: each must be named by the cause in whose
folder it lies.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.causes.fixtures import HERE
from trainprobe.model.diagnosis import Report
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain
from trainprobe.shipped import read_yaml

WORDINGS = [
    (folder.parent.name, text)
    for folder in sorted(HERE.glob("*/wordings.yaml"))
    for text in read_yaml(folder.read_text(encoding="utf-8"))
    if isinstance(text, str)
]


def judged(text: str, folder: Path, **given: str) -> Report:
    log = folder / "job.log"
    log.write_text(text + "\n", encoding="utf-8")
    env = folder / "env.txt"
    env.write_text("".join(f"{name}={value}\n" for name, value in given.items()), encoding="utf-8")
    return explain(
        ExplainRequest(
            paths=(str(log),),
            env_files=(str(env),) if given else (),
            argv=("trainprobe", "explain", "job.log"),
        )
    )


@pytest.mark.parametrize(
    ("cause_id", "text"),
    WORDINGS,
    ids=[f"{cause_id}-{number}" for number, (cause_id, _) in enumerate(WORDINGS)],
)
def test_a_piece_of_a_log_is_named(cause_id: str, text: str, tmp_path: Path) -> None:
    report = judged(text, tmp_path)

    assert report.causes, report.verdict
    first = report.causes[0]
    assert (first.id, first.named) == (cause_id, True), [
        (cause.id, cause.points) for cause in report.causes
    ]
    assert first.summary.endswith((".", "…"))
    assert first.fixes
