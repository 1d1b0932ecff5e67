"""Programs on the nodes of a job by its batch system's own starter. The starters are stand-ins that
keep to what the manuals say: pbsdsh carries neither stdin nor stdout.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from trainprobe.errors import UsageError
from trainprobe.model.request import ReadyRequest
from trainprobe.nodes.transports import Way, way_in_allocation
from trainprobe.ready.node_selection import way_to_nodes
from trainprobe.system.run import Ran, run

STARTERS = {
    "pbsdsh": '[ "$1 $3" = "-n --" ] || exit 9; echo "$2" >>{folder}/asked; shift 3;'
    ' exec "$@" </dev/null >>{folder}/job.out 2>&1',
    "blaunch": '[ "$1" != -n ] || shift; echo "$1" >>{folder}/asked; exec sh -c "$2"',
    "qrsh": 'shift; [ "$1" != -nostdin ] || shift; echo "$1" >>{folder}/asked; exec sh -c "$2"',
    "flux": 'case $1 in getattr) echo "node[1-3]"; exit;; esac; shift; [ "$1" != --noinput ] ||'
    ' shift; echo "$1" >>{folder}/asked; shift 2; exec "$@"',
    "ssh": "exit 255",
}
JOBS = {
    "pbs": {"PBS_JOBID": "7", "PBS_NODEFILE": "{folder}/nodes"},
    "lsf": {"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "node1 2 node2 2 node3 2"},
    "sge": {"JOB_ID": "7", "PE_HOSTFILE": "{folder}/nodes"},
    "flux": {"FLUX_URI": "local:///run/flux"},
}
ASKED = {"pbs": "2", "lsf": "node2", "sge": "node2", "flux": "--rank=1"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in STARTERS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text.format(folder=tmp_path)}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "nodes").write_text("node1\nnode1\nnode2\nnode2\nnode3\n", encoding="ascii")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def job(by: str, folder: Path) -> dict[str, str]:
    told = {name: value.format(folder=folder) for name, value in JOBS[by].items()}
    return {**told, "PATH": os.environ["PATH"]}


def asked(way: Way, *words: str, said: bytes = b"", held: bool = False) -> Ran:
    node = way.node("node2", words, said, held=held)
    return run(node.argv, timeout_s=30, input=node.said, hold_input=node.held)


@pytest.mark.parametrize("by", sorted(JOBS))
def test_stdin_reaches_the_program_and_its_answer_comes_back(by: str, folder: Path) -> None:
    way = way_in_allocation(job(by, folder))
    assert (way.by, way.names, way.scheduler) == (by, ("node1", "node2", "node3"), by)
    task = {"program": "no such", "env": {}, "timeout_s": 5, "python": ""}
    ran = asked(way, "probe-here", said=json.dumps(task).encode() + b"\n", held=True)
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [line.get("says") for line in lines] == ["begin", "end"], ran.stderr
    assert "There is no probe 'no such' here" in lines[-1]["reason"]
    assert (folder / "asked").read_text().split() == [ASKED[by]]


def test_a_program_that_cannot_start_under_pbs_says_nothing_and_holds_nobody(folder: Path) -> None:
    (folder / "pbsdsh").write_text("#!/bin/sh\necho 'pbsdsh: spawn failed' >&2\nexit 1\n")
    ran = asked(way_in_allocation(job("pbs", folder)), "--version")
    assert (ran.ended.code, ran.stdout, b"pbsdsh ended with code 1" in ran.stderr) == (1, b"", True)


def test_the_end_of_stdin_reaches_a_program_under_pbs(folder: Path) -> None:
    way = way_in_allocation(job("pbs", folder))
    ran = asked(way, "checks-here")  # nothing is said, so that its task is missing
    assert b"No task came on stdin" in ran.stdout


@pytest.mark.parametrize("by", sorted(JOBS))
def test_without_a_starter_ssh_leads_to_the_nodes(by: str, folder: Path) -> None:
    if by == "flux":
        pytest.skip("flux itself tells the nodes")
    way = way_in_allocation({**job(by, folder), "PATH": "/nowhere"})
    assert (way.by, way.names, way.scheduler) == ("ssh", ("node1", "node2", "node3"), by)


def ready_way(environ: Mapping[str, str], *nodes: str, scheduler: bool = True) -> Way:
    return way_to_nodes(ReadyRequest(nodes=nodes, slurm=scheduler), environ)


def test_ready_looks_at_all_nodes_of_a_job_or_says_why_it_cannot(folder: Path) -> None:
    environ = job("pbs", folder)
    assert ready_way(environ).names == ("node1", "node2", "node3")
    assert ready_way(environ, "node3", "node2").by == "pbs"
    assert ready_way(environ, "node3", "other").by == "ssh"
    assert ready_way(environ, scheduler=False).by == "here"
    (folder / "nodes").unlink()
    lost = ready_way(environ)
    assert (lost.by, "PBS_NODEFILE" in lost.unseen) == ("here", True)
    with pytest.raises(UsageError, match="are not known"):
        ready_way(environ, "all")


def test_a_job_of_this_node_alone_is_looked_at_here(folder: Path) -> None:
    (folder / "nodes").write_text(f"{os.uname().nodename}.cluster\n" * 2, encoding="ascii")
    way = ready_way(job("pbs", folder))
    assert (way.by, way.unseen) == ("here", "")
