"""What this machine shows of itself, tried for real."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from trainprobe.cli import run
from trainprobe.collect import visibility
from trainprobe.errors import UsageError


def test_every_look_is_tried_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen = visibility.see(sys.executable, {"PATH": "/nowhere", "NCCL_RAS_ADDR": "localhost:1"})
    assert seen.python == sys.executable
    assert seen.kernel_log.outcome
    assert seen.gpus.outcome
    assert (seen.dump.outcome == "ok") or seen.dump.reason
    assert (seen.ras, seen.ras_port) == (False, 1)
    assert not list(tmp_path.iterdir())


def test_a_python_that_is_none_is_told() -> None:
    with pytest.raises(UsageError, match="does not exist"):
        visibility.see("/nowhere/python")


@pytest.mark.parametrize(
    ("mounts", "value"),
    [
        ("22 1 0:21 / /proc rw,relatime - proc proc rw,hidepid=2,gid=5", "2"),
        ("22 1 0:21 / /proc rw - proc proc rw,hidepid=invisible", "invisible"),
        ("22 1 0:21 / /proc rw - proc proc rw", ""),
        ("22 1 0:21 / /proc/sys rw - proc proc rw,hidepid=2\nnonsense\n", ""),
        ("", ""),
    ],
)
def test_the_mount_of_proc_tells_who_is_hidden(mounts: str, value: str) -> None:
    assert visibility.hidepid_of(mounts) == value


def test_doctor_prints_the_same_lines_as_text_and_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = run(["doctor", "--python", sys.executable])
    text = capsys.readouterr().out
    assert run(["doctor", "--python", sys.executable, "--json", "-"]) == code
    report = json.loads(capsys.readouterr().out)
    assert report["schema"] == "trainprobe.doctor/1"
    assert len(report["lines"]) == 13
    for line in report["lines"]:
        assert line["title"] in text
        assert line["seen"] in ("yes", "part", "no", "unused")
        if line["remedy"]:
            assert f"do  {line['remedy'].split()[0]}" in text
    assert max(map(len, text.splitlines())) <= 100
    stacks = next(line for line in report["lines"] if line["id"] == "stacks")
    assert code == (0 if stacks["seen"] == "yes" else 3)
