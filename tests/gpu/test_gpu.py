"""The same jobs, started and looked at where there is a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu.jobs import JOBS, asked, has_gpu, right

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not has_gpu(), reason="no NVIDIA GPU on this machine"),
]


@pytest.mark.parametrize("name", JOBS)
def test_a_job_on_a_gpu_is_judged_right(name: str, tmp_path: Path) -> None:
    told = asked(JOBS[name], tmp_path)
    assert right(JOBS[name], told["report"]), (tmp_path / "said.txt").read_text()
