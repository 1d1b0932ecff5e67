"""Dumps that are compressed, or that come through stdin, tell what they tell as plain files."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.conftest import ROOT
from tests.unit.logs.test_gathering import evidence, write
from trainprobe.model.diagnosis import Report
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain

RECORDED = ROOT / "tests" / "unit" / "recorder" / "data"
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.compress,
}
STACKS = """Process 4{rank}: python train.py
Python v3.11.4 (/usr/bin/python3.11)

Thread 4{rank} (active): "MainThread"
    wait (threading.py:320)
    all_reduce (torch/distributed/distributed_c10d.py:2501)
    step (train.py:{line})
    <module> (train.py:80)
"""


def judged(
    tmp_path: Path, name: str, files: dict[str, bytes]
) -> tuple[Report, list[dict[str, Any]]]:
    folder = tmp_path / name
    write(folder / "dumps", dict(files))
    report = explain(
        ExplainRequest(
            paths=(str(folder / "dumps"),),
            case=str(folder / "case"),
            argv=("trainprobe", "explain"),
        )
    )
    return report, evidence(folder / "case")


def dumps_of(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The record of each dump, by its path; dumps that end alike share one."""
    return {
        path: row
        for row in rows
        if row["kind"] == "flight_recorder"
        for path in [one[1] for one in row["data"].get("dumps", [])] or [row["data"]["path"]]
    }


def told(rows: list[dict[str, Any]], *kinds: str) -> list[Any]:
    """What the dumps say, without where they lay and when they were read."""
    own = ("path", "bytes", "written_at", "dumps")
    return [
        (
            row["kind"],
            row["subject"],
            {key: value for key, value in row["data"].items() if key not in own},
        )
        for row in rows
        if row["kind"] in kinds
    ]


@pytest.mark.parametrize("ending", sorted(PACKED))
@pytest.mark.parametrize("kind", ["missing", "missing-json"])
def test_packed_flight_recorder_dumps_are_read_as_dumps(
    tmp_path: Path, kind: str, ending: str
) -> None:
    plain = {path.name: path.read_bytes() for path in sorted((RECORDED / kind).iterdir())}
    packed = {f"{name}.{ending}": PACKED[ending](content) for name, content in plain.items()}
    first, rows = judged(tmp_path, "plain", plain)
    second, packed_rows = judged(tmp_path, "packed", packed)
    assert len(dumps_of(rows)) == len(plain)
    assert told(packed_rows, "flight_recorder", "job") == told(rows, "flight_recorder", "job")
    assert (second.verdict, [(one.id, one.ranks) for one in second.causes]) == (
        first.verdict,
        [(one.id, one.ranks) for one in first.causes],
    )
    assert set(dumps_of(packed_rows)) == {
        str(tmp_path / "packed" / "dumps" / name) for name in packed
    }
    assert {row["data"]["what"] for row in packed_rows if row["kind"] == "log.file"} == {
        "flight-recorder"
    }
    assert not [row for row in packed_rows if row["kind"] == "log.extract"]


@pytest.mark.parametrize("ending", ["gz", "xz"])
def test_packed_stack_dumps_are_read_as_stacks(tmp_path: Path, ending: str) -> None:
    plain = {
        f"stack_rank_{rank}.txt": STACKS.format(rank=rank, line=40 + rank).encode()
        for rank in range(2)
    }
    _, rows = judged(tmp_path, "plain", plain)
    _, packed_rows = judged(
        tmp_path,
        "packed",
        {f"{name}.{ending}": PACKED[ending](content) for name, content in plain.items()},
    )
    stacks = told(rows, "stacks.python")
    assert [subject["rank"] for _, subject, _ in stacks] == [0, 1]
    assert told(packed_rows, "stacks.python") == stacks
    assert not [row for row in packed_rows if row["kind"] == "log.extract"]


def through_stdin(tmp_path: Path, content: bytes, *others: str) -> list[dict[str, Any]]:
    command = [
        sys.executable,
        "-m",
        "trainprobe",
        "explain",
        "-",
        *others,
        "--case",
        str(tmp_path / "case"),
    ]
    ended = subprocess.run(
        command,
        input=content,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert b"Traceback" not in ended.stderr
    return evidence(tmp_path / "case")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_dump_comes_through_stdin_beside_another_as_a_file(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    first, second = (RECORDED / "missing" / f"gloo_trace_rank_{rank}" for rank in (0, 1))
    rows = through_stdin(tmp_path, pack(first.read_bytes()), str(second))
    assert len([row for row in rows if row["kind"] == "job"]) == 1
    dumps = dumps_of(rows)
    assert set(dumps) == {"-", str(second)}
    assert dumps["-"]["outcome"] == "ok"
    assert [entry["seq"] for entry in dumps["-"]["data"]["entries"]] == [3, 4]  # the end


def test_stacks_come_through_stdin(tmp_path: Path) -> None:
    rows = through_stdin(tmp_path, STACKS.format(rank=0, line=40).encode())
    assert [row["data"]["pid"] for row in rows if row["kind"] == "stacks.python"] == [40]


def test_a_log_through_stdin_stays_a_log(tmp_path: Path) -> None:
    lines = [json.dumps({"step": step, "loss": 1.0}) for step in range(9)]
    rows = through_stdin(tmp_path, "\n".join([*lines, "ValueError: no such split"]).encode())
    assert len([row for row in rows if row["kind"] == "log.extract"]) == 1
    assert not [row for row in rows if row["kind"] in ("job", "flight_recorder", "stacks.python")]


def test_a_packed_dump_that_is_torn_is_told_and_one_that_is_none_is_a_log(tmp_path: Path) -> None:
    whole = (RECORDED / "missing" / "gloo_trace_rank_0").read_bytes()
    torn = b"#0 loss\n#1 loss\n" * 5
    _, rows = judged(
        tmp_path,
        "torn",
        {
            "gloo_trace_rank_0.gz": gzip.compress(whole[: len(whole) // 2]),
            "run.log.gz": gzip.compress(torn),
        },
    )
    assert [row["outcome"] for row in rows if row["kind"] == "flight_recorder"] == ["partial"]
    assert [row["data"]["lines"] for row in rows if row["kind"] == "log.extract"] == [10]


def test_nothing_of_it_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    judged(
        tmp_path,
        "packed",
        {
            "gloo_trace_rank_0.gz": gzip.compress(
                (RECORDED / "missing" / "gloo_trace_rank_0").read_bytes()
            )
        },
    )
    assert list((tmp_path / "tmp").iterdir()) == []
