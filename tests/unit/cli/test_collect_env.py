"""`trainprobe collect-env`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from trainprobe.cli import run
from trainprobe.logs.environment_reports import read_environment_report


def test_json_is_what_explain_reads(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth7")
    monkeypatch.setenv("HF_TOKEN", "hf_0123456789abcdefghij")
    assert run(["collect-env", "--json", "-"]) == 0
    said = capsys.readouterr().out
    told = json.loads(said)
    assert told["schema"] == "trainprobe.environment/1"
    assert told["host"]
    values = told["values"]
    assert {
        "limit.nofile",
        "limit.memlock_bytes",
        "limit.nproc",
        "cpus",
        "kernel",
        "version.python",
        "env.NCCL_SOCKET_IFNAME",
    } <= values.keys()
    assert values["version.python"] == ".".join(map(str, sys.version_info[:3]))
    assert "hf_0123" not in said
    assert read_environment_report(said) == values


def test_text_is_read_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth7")
    assert run(["collect-env"]) == 0
    values = read_environment_report(capsys.readouterr().out)
    assert values["env.NCCL_SOCKET_IFNAME"] == "eth7"
    assert values["limit.nofile"] == "unlimited" or int(values["limit.nofile"]) > 0


def test_a_file_and_another_python(tmp_path: Path) -> None:
    file = tmp_path / "here.json"
    assert run(["collect-env", "--json", str(file), "--python", sys.executable]) == 0
    assert json.loads(file.read_text())["values"]["version.python"] == ".".join(
        map(str, sys.version_info[:3])
    )


def test_a_python_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["collect-env", "--python", "/no/such/python"]) == 2
    assert "/no/such/python cannot be asked" in capsys.readouterr().err


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    assert run(["collect-env", "--json", str(tmp_path / "none" / "here.json")]) == 2
