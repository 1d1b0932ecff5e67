"""The nodes of a job, as SLURM, PBS, LSF, Flux and Grid Engine tell them to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.targets.allocations import allocation_around

NODES = ("node1", "node2", "node3")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "nodes").write_text("node1\nnode1\nnode2\nnode3\nnode3\n", encoding="ascii")
    rows = "".join(f"{name} 8 all.q@{name} UNDEFINED\n" for name in NODES)
    (tmp_path / "pe").write_text(rows, encoding="ascii")
    (tmp_path / "empty").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("environ", "by"),
    [
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[1-3]"}, "slurm"),
        ({"PBS_JOBID": "7.server", "PBS_NODEFILE": "{}/nodes"}, "pbs"),
        ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "node1 2 node2 1 node3 2"}, "lsf"),
        ({"LSB_JOBID": "7", "LSB_HOSTS": "node1 node1 node2 node3"}, "lsf"),
        ({"LSB_JOBID": "7", "LSB_DJOB_HOSTFILE": "{}/nodes"}, "lsf"),
        ({"JOB_ID": "7", "PE_HOSTFILE": "{}/pe"}, "sge"),
    ],
)
def test_the_nodes_of_a_job(environ: dict[str, str], by: str, files: Path) -> None:
    found = allocation_around({name: value.format(files) for name, value in environ.items()})
    assert found is not None
    assert (found.by, found.names, found.trouble) == (by, NODES, "")


def test_the_place_of_a_node_is_that_of_its_first_slot(files: Path) -> None:
    found = allocation_around({"PBS_JOBID": "7", "PBS_NODEFILE": f"{files}/nodes"})
    assert found is not None
    assert found.places == {"node1": 0, "node2": 2, "node3": 3}


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"PBS_JOBID": "7", "PBS_NODEFILE": "/no/such"}, "PBS_NODEFILE /no/such cannot be read"),
        ({"PBS_JOBID": "7", "PBS_ENVIRONMENT": "PBS_BATCH"}, "PBS_NODEFILE (not set)"),
        ({"PBS_JOBID": "7", "PBS_NODEFILE": "{}/empty"}, "is empty"),
        ({"LSB_JOBID": "7", "LSB_HOSTS": "-oProxyCommand=reboot"}, "is no name of a host"),
    ],
)
def test_nodes_that_are_not_told_are_not_guessed(
    environ: dict[str, str], says: str, files: Path
) -> None:
    found = allocation_around({name: value.format(files) for name, value in environ.items()})
    assert found is not None
    assert (found.names, says in found.trouble) == ((), True)


def test_outside_of_a_job_there_is_none() -> None:
    assert allocation_around({"PBS_NODEFILE": "/x", "JOB_ID": "3", "LSB_HOSTS": "node1"}) is None


def test_flux_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance tells its brokers; the nodes of a task's job are some of them."""
    flux = tmp_path / "flux"
    flux.write_text(
        "#!/bin/sh\ncase $1 in getattr) echo 'node[0-3]';; jobs) echo 'node[1,3]';; *) exit 1; esac\n",
        encoding="ascii",
    )
    flux.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    whole = allocation_around({"FLUX_URI": "local:///run/flux"})
    part = allocation_around({"FLUX_URI": "local:///run/flux", "FLUX_JOB_ID": "f12"})
    assert whole is not None
    assert part is not None
    assert whole.names == ("node0", "node1", "node2", "node3")
    assert (part.names, part.places) == (("node1", "node3"), {"node1": 1, "node3": 3})
    flux.write_text("#!/bin/sh\necho 'flux: no broker' >&2\nexit 1\n", encoding="ascii")
    lost = allocation_around({"FLUX_URI": "local:///run/flux"})
    assert lost is not None
    assert (lost.names, lost.trouble) == ((), "flux: no broker")
