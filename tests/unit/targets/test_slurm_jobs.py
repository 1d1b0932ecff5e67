"""What scontrol says of a job, by a scontrol that says it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from trainprobe.errors import UsageError
from trainprobe.targets.slurm_jobs import slurm_job

RUNNING = (
    "JobId=4711 JobName=train me UserId=me(1000) JobState=RUNNING ReqNodeList=(null)"
    " ExcNodeList=(null) NodeList=node[1-3] BatchHost=node1 NumNodes=3"
)


def scontrol(folder: Path, monkeypatch: pytest.MonkeyPatch, job: str, code: int = 0) -> None:
    program = folder / "scontrol"
    program.write_text(
        "#!/bin/sh\nif [ $2 = hostnames ]; then printf 'node1\\nnode2\\nnode3\\n'; exit 0;"
        f" fi\necho '{job}'\nexit {code}\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_running_job_has_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scontrol(tmp_path, monkeypatch, RUNNING)
    job = slurm_job("4711.0")
    assert (job.job, job.step, job.nodes) == ("4711", "0", ("node1", "node2", "node3"))


@pytest.mark.parametrize(
    ("end", "limited"), [("2026-11-22T05:00:00", True), ("Unknown", False), ("", False)]
)
def test_a_time_limit_is_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, limited: bool
) -> None:
    scontrol(tmp_path, monkeypatch, f"{RUNNING} EndTime={end}")
    ends_at = slurm_job("4711").ends_at
    assert (
        ends_at is not None and time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(ends_at)) == end
    ) is limited


@pytest.mark.parametrize("state", ["PENDING", "COMPLETED", "NODE_FAIL"])
def test_a_job_that_does_not_run_cannot_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    scontrol(tmp_path, monkeypatch, RUNNING.replace("RUNNING", state))
    with pytest.raises(UsageError, match=f"Job 4711 is {state}"):
        slurm_job("4711")


@pytest.mark.parametrize("given", ["", "train", "4711;reboot", "--help", "1.x"])
def test_what_is_no_job_id_is_refused_before_anything_is_run(given: str) -> None:
    with pytest.raises(UsageError, match="needs a job id"):
        slurm_job(given)


def test_without_slurm_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError) as raised:
        slurm_job("4711")
    assert "--hosts" in raised.value.do


def test_what_scontrol_refuses_is_said_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scontrol").write_text(
        "#!/bin/sh\necho 'slurm_load_jobs error: Invalid job id specified' >&2\nexit 1\n"
    )
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UsageError, match="Invalid job id specified"):
        slurm_job("4711")


def task(number: int, state: str = "RUNNING") -> str:
    job = RUNNING.replace(
        "JobId=4711", f"JobId={4710 + number} ArrayJobId=4711 ArrayTaskId={number}"
    )
    return job.replace("JobState=RUNNING", f"JobState={state}")


def test_the_only_task_of_an_array_that_runs_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scontrol(tmp_path, monkeypatch, "\n".join((task(1, "COMPLETED"), task(3), task(4, "PENDING"))))
    assert slurm_job("4711").job == "4713"


def test_of_an_array_with_several_running_tasks_one_must_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scontrol(tmp_path, monkeypatch, "\n".join((task(1), task(3))))
    with pytest.raises(UsageError, match="Job 4711 is 2 running jobs: 4711_1, 4711_3"):
        slurm_job("4711")


def test_a_node_list_that_holds_what_no_host_is_called_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scontrol(tmp_path, monkeypatch, RUNNING)
    program = tmp_path / "scontrol"
    program.write_text(program.read_text().replace("node1\\nnode2", "x;reboot"))
    with pytest.raises(UsageError, match="is no name of a host"):
        slurm_job("4711")


@pytest.mark.parametrize(
    "says",
    [
        "scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host",
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
    ],
)
def test_without_a_controller_the_way_to_one_is_told(
    says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 1\n", "utf-8")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UsageError) as told:
        slurm_job("4711")
    assert "login node" in told.value.do
