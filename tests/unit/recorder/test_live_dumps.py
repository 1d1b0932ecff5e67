"""Dumps of a live job, where torch and its relatives write them; stale and foreign ones are
evidence, and are not read.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.recorder.dumps import real
from trainprobe.case import Case
from trainprobe.collect import flight_paths
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import flight_recorder
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Evidence


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    """A process that stands for rank 1, with a home and a folder of its own and a prefix in its
    environment.
    """
    for name in ("home", "job", "job/outputs"):
        (tmp_path / name).mkdir()
    env = {"HOME": str(tmp_path / "home"), "TORCH_FR_DUMP_TEMP_FILE": "dumps/fr_"}
    child = subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()"],
        env=env,
        cwd=tmp_path / "job",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline()
    yield Member(1, child.pid)
    child.communicate(b"\n", timeout=20)


@pytest.fixture(autouse=True)
def _only_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(flight_paths, "DEFAULT_PREFIXES", (f"{tmp_path}/tmp/nccl_trace_rank_",))


def dumps_of(
    case: Case,
    members: list[Member],
    environment: dict[str, dict[str, str]],
    began: float | None,
) -> list[Evidence]:
    job = JobView(members, {"environment": environment, "began": began}, cell="job")
    return collect(case, flight_recorder.COLLECTOR, job)


def put(path: Path, content: bytes, age_s: float = 0.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (time.time() - age_s,) * 2)


@pytest.mark.parametrize(
    "where",
    [
        "job/dumps/fr_1",
        "home/.cache/torch/comm_lib_trace_rank_1",
        "tmp/nccl_trace_rank_1",
        "job/comm_traces/rank_1",
        "job/outputs/comm_traces/rank_1.json",
    ],
)
def test_every_known_place_is_looked_at(where: str, member: Member, tmp_path: Path) -> None:
    put(tmp_path / where, real("missing-json" if where.endswith("json") else "missing")[1])
    with Case.create(str(tmp_path / "case"), "attach", []) as case:
        found = dumps_of(case, [member], {}, time.time() - 60)
    assert [
        (record.subject.rank, record.subject.pid, record.outcome, len(record.data["entries"]))
        for record in found
    ] == [(1, member.pid, "ok", 3)]
    assert found[0].data["path"] == str(tmp_path / where)
    assert Path(case.folder, found[0].files[0]).read_bytes() == (tmp_path / where).read_bytes()


def test_a_prefix_that_only_the_jobs_record_knows(member: Member, tmp_path: Path) -> None:
    put(
        tmp_path / "shared" / "x_2", real("missing")[2]
    )  # of a rank on another host, by a shared file system
    with Case.create(str(tmp_path / "case"), "attach", []) as case:
        found = dumps_of(
            case,
            [member],
            {"job": {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{tmp_path}/shared/x_"}},
            time.time() - 60,
        )
    assert [(record.subject.rank, record.outcome) for record in found] == [(2, "ok")]


def test_a_dump_of_an_earlier_job_is_told_and_not_read(member: Member, tmp_path: Path) -> None:
    put(tmp_path / "tmp/nccl_trace_rank_1", real("missing")[1], age_s=3600)
    put(
        tmp_path / "tmp/nccl_trace_rank_5", real("missing")[1], age_s=3600
    )  # of no rank of this job: not worth a word
    with Case.create(str(tmp_path / "case"), "attach", []) as case:
        found = dumps_of(case, [member], {}, time.time() - 60)
    assert [(record.subject.rank, record.outcome) for record in found] == [(1, "unavailable")]
    assert "older than this job" in found[0].reason
    assert "entries" not in found[0].data


def test_of_two_dumps_the_newer_counts(member: Member, tmp_path: Path) -> None:
    put(tmp_path / "tmp/nccl_trace_rank_1", real("pairing")[1], age_s=40)
    put(tmp_path / "job/dumps/fr_1", real("missing")[1], age_s=2)
    with Case.create(str(tmp_path / "case"), "attach", []) as case:
        found = dumps_of(case, [member], {}, time.time() - 60)
    assert [record.data["path"] for record in found] == [str(tmp_path / "job/dumps/fr_1")]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_another_users_dump_is_not_believed(
    member: Member, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "tmp/nccl_trace_rank_1", real("missing")[1])
    os.chown(tmp_path / "tmp/nccl_trace_rank_1", 65534, 65534)
    monkeypatch.setattr(
        "trainprobe.collect.collectors.flight_recorder._owners", lambda _: {0, 1000}
    )
    with Case.create(str(tmp_path / "case"), "attach", []) as case:
        found = dumps_of(case, [member], {}, None)
    assert [
        (record.outcome, "belongs to another user (uid 65534)" in record.reason) for record in found
    ] == [("unavailable", True)]


def test_nothing_there_is_nothing_said(member: Member, tmp_path: Path) -> None:
    with Case.create(str(tmp_path / "case"), "attach", []) as case:
        assert dumps_of(case, [member, Member(2, 2**22 + 5)], {}, None) == []
