"""Clusters for tests: made once for a test process, or skipped with the reason."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster import hosts as made_hosts
from tests.cluster import slurm as made_slurm
from tests.cluster import ssh as made_ssh
from tests.cluster.hosts import Host
from tests.cluster.slurm import Slurm

COUNT = 4
RELAYED = (4,)
LANE = "TRAINPROBE_TEST_LANE"  # from 0 to 9, for test runs side by side on one machine


@dataclass(frozen=True)
class Cluster:
    """Four hosts with sshd and SLURM. `ssh_config` is for `ssh -F`. The link of node4 can be
    delayed.
    """

    hosts: Sequence[Host]
    slurm: Slurm
    ssh_config: Path

    def __getitem__(self, number: int) -> Host:
        return self.hosts[number - 1]


def lane(place: int = 0) -> int:
    """What keeps clusters on one machine apart: twelve for each run of tests, three for each of its
    four workers, by `place`, since they live side by side.
    """
    worker = int("".join(filter(str.isdigit, os.environ.get("PYTEST_XDIST_WORKER", "gw0"))) or 0)
    return int(os.environ.get(LANE, "0")) * 12 + worker % 4 * 3 + place


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Make the cluster; test processes that run side by side have one each."""
    reason = made_hosts.why_not() or made_slurm.why_not() or made_ssh.why_not()
    if reason:
        pytest.skip(f"no cluster on this machine: {reason}")
    folder = tmp_path_factory.mktemp("cluster")
    with (
        made_hosts.hosts(COUNT, folder / "hosts", lane=lane(), relayed=RELAYED) as nodes,
        made_slurm.slurm(nodes, folder / "slurm") as found,
        made_ssh.sshd(nodes, folder / "ssh") as config,
    ):
        yield Cluster(nodes, found, config)


@pytest.fixture(autouse=True)
def healed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test does to hosts and links is taken back."""
    yield
    if "cluster" in request.fixturenames:
        found: Cluster = request.getfixturevalue("cluster")
        for host in found.hosts:
            host.resume()
            host.healed()
