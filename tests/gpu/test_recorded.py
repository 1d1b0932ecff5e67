"""Evidence of an H200 with real CUDA and NCCL is judged right, on any machine."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from tests.gpu.jobs import JOBS, right
from tests.gpu.recordings import RECORDED, judged, names
from trainprobe.pipelines import explain
from trainprobe.report.json_report import report_text


@pytest.mark.parametrize("name", names())
def test_what_was_seen_on_a_gpu_is_judged_right(name: str) -> None:
    report = judged(name)
    assert right(JOBS[name], report), (report["verdict"], report["says"], report["causes"][:2])


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.log")), ids=lambda path: path.stem)
def test_what_a_job_printed_on_a_gpu_is_judged_right(path: Path) -> None:
    report = json.loads(report_text(explain(str(path))))
    assert right(JOBS[path.stem], report), (report["verdict"], report["causes"][:2])


@pytest.mark.parametrize("name", names())
def test_a_recording_tells_nothing_of_the_machine(name: str) -> None:
    text = lzma.decompress((RECORDED / f"{name}.xz").read_bytes()).decode()
    for trace in ("/root", "/home/", "/work/", "/opt/torch", '"vm"'):
        assert trace not in text.replace("/home/user", ""), trace
