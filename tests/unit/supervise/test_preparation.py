"""What a job is given, and that nothing of its user's is changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainprobe.supervise.preparation import prepared, torch_version


def program(folder: Path, version: str) -> str:
    place = folder / "lib" / "python3.11" / "site-packages" / "torch"
    place.mkdir(parents=True)
    (place / "version.py").write_text(f"from typing import Optional\n__version__ = '{version}'\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").write_text("")
    script = folder / "bin" / "torchrun"
    script.write_text(f"#!{folder}/bin/python\n")
    script.chmod(0o755)
    return str(script)


def test_names_are_those_that_the_jobs_torch_knows(tmp_path: Path) -> None:
    new, old = program(tmp_path / "new", "2.13.0+cpu"), program(tmp_path / "old", "2.4.1")
    assert torch_version([new], {}) == (2, 13)
    assert "TORCH_FR_BUFFER_SIZE" in prepared({}, "/c", [new, "train.py"])
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" not in prepared({}, "/c", [new])
    assert prepared({}, "/c", [old])["TORCH_NCCL_TRACE_BUFFER_SIZE"] == "2000"
    assert "TORCH_FR_DUMP_TEMP_FILE" not in prepared({}, "/c", [old])


@pytest.mark.parametrize(
    "name",
    [
        "TORCH_NCCL_TRACE_BUFFER_SIZE",
        "TORCH_FR_BUFFER_SIZE",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
        "TORCH_FR_DUMP_TEMP_FILE",
        "TORCH_NCCL_DUMP_ON_TIMEOUT",
        "PYTHONFAULTHANDLER",
        "TORCHELASTIC_ERROR_FILE",
    ],
)
def test_what_the_user_has_set_stays_under_either_name(name: str) -> None:
    alone, beside = prepared({}, "/c"), prepared({name: "0"}, "/c")
    assert name not in beside
    assert len(beside) == len(alone) - 1


def test_no_timeout_and_no_algorithm_is_touched() -> None:
    for name in prepared({}, "/c"):
        assert not re.search(r"TIMEOUT(?!$)|TIMEOUT_S|ALGO|PROTO|BLOCKING|ASYNC", name)
    assert prepared({}, "/c")["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "1"
