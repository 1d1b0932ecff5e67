"""`trainprobe ready` on this node by its command line: forms, codes, and what cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainprobe.cli import run
from trainprobe.model.request import ReadyRequest
from trainprobe.ready.node_selection import leads, way_to_nodes


@pytest.mark.parametrize(
    "words",
    [
        ["--quick", "--deep"],
        ["--format", "xml"],
        ["--slot", "lunch"],
        ["--inconclusive", "maybe"],
        ["--paths", "data"],
        ["--paths", "/data/a:b"],
        ["--nodes", "node[1-"],
        ["--nodes", "all", "--no-slurm"],
        ["--slot", "prolog", "--nodes", "node1"],
        ["--timeout", "0"],
        ["stray"],
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_started(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)
    assert run(["ready", *words]) == 2
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err.startswith("trainprobe: ")


def test_this_node_is_told_in_json_within_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    bad = tmp_path / "bad"
    bad.write_text("node9\n", encoding="ascii")
    code = run(["ready", "--no-slurm", "--format", "json", "--quiet", "--exclude-file", str(bad)])
    report = json.loads(capsys.readouterr().out)
    assert report["command"] == "ready"
    assert code == {"healthy": 0, "undetermined": 3}.get(report["verdict"], 1)
    states = {row["id"]: row["state"] for row in report["readiness"]["checks"]}
    assert {"lim.nofile", "shm.size", "fs.hang", "plan.ranks", "diag.recorder"} <= set(states)
    assert (report["readiness"]["exclude"], len(report["readiness"]["nodes"])) == ([], 1)
    assert not bad.exists()  # of an earlier run, and no node is to be left out
    assert report["looked_s"] < 45


def test_a_folder_that_cannot_be_written_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir("/proc")
    code = run(["ready", "--no-slurm", "--format", "json", "--quiet"])
    report = json.loads(capsys.readouterr().out)
    assert (report["case"], code in {0, 1, 3}) == ("", True)
    assert len(report["readiness"]["checks"]) > 20


IN_JOB = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NODELIST": "node[1-3]",
    "SLURMD_NODENAME": "node1",
    "PATH": "/usr/bin:/bin",
}


@pytest.mark.parametrize(
    ("environ", "leader"),
    [
        ({}, True),
        ({**IN_JOB, "SLURM_PROCID": "0"}, True),
        ({**IN_JOB, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "0"}, True),
        ({**IN_JOB, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "2"}, False),
        ({**IN_JOB, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, True),
    ],
)
def test_one_task_of_a_step_leads(environ: dict[str, str], leader: bool) -> None:
    assert leads(environ) is leader


def test_the_nodes_are_those_around_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: "/usr/bin/srun")
    assert (
        way_to_nodes(ReadyRequest(), {}).by,
        way_to_nodes(ReadyRequest(slurm=False), IN_JOB).by,
    ) == ("here", "here")
    assert way_to_nodes(ReadyRequest(), IN_JOB).names == ("node1", "node2", "node3")
    step = {
        **IN_JOB,
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_NODELIST": "node[2-3]",
    }
    assert way_to_nodes(ReadyRequest(), step).names == ("node2", "node3")
    assert way_to_nodes(ReadyRequest(slot="prolog"), IN_JOB).by == "here"
    assert way_to_nodes(ReadyRequest(), {**IN_JOB, "SLURM_JOB_NODELIST": "node1"}).by == "here"
    chosen = way_to_nodes(ReadyRequest(nodes=("node3",)), IN_JOB)
    assert (chosen.by, chosen.names) == ("slurm", ("node3",))
    assert way_to_nodes(ReadyRequest(nodes=("other",)), IN_JOB).by == "ssh"
