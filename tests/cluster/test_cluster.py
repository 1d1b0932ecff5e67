"""The cluster itself: it is what the tests over it take it for."""

from __future__ import annotations

import subprocess
import time

from tests.cluster.conftest import Cluster


def reaches(cluster: Cluster, number: int, *, within_s: int = 2) -> bool:
    """Does node1 get an answer of the sshd on that node?"""
    ask = (
        f"import socket; print(socket.create_connection(({cluster[number].address!r}, 22),"
        f" {within_s}).makefile('rb').readline())"
    )
    socket_timeout = f"import socket; socket.setdefaulttimeout({within_s}); {ask}"
    return "SSH-2.0" in cluster[1].run("python3", "-c", socket_timeout).stdout


def test_a_job_step_runs_on_hosts_of_their_own_names(cluster: Cluster) -> None:
    done = cluster.slurm.run("srun", "-N3", "-n3", "--nodelist=node[1-3]", "hostname")
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["node1", "node2", "node3"])


def test_a_second_step_overlaps_a_running_job_and_sees_only_its_own_host(cluster: Cluster) -> None:
    job = cluster.slurm.job("#!/bin/sh\nsrun sleep 98\n", "-N2", "-n2", "--nodelist=node[1-2]")
    until = time.monotonic() + 10
    seen: list[str] = []
    while time.monotonic() < until and len(seen) < 2:
        look = (
            "for p in /proc/[0-9]*; do [ \"$(tr '\\0' ' ' < $p/cmdline)\" = '/usr/bin/sleep 98 ' ]"
            " && hostname; done; true"
        )
        seen = cluster.slurm.run(
            "srun", "--overlap", f"--jobid={job}", "-N2", "-n2", "sh", "-c", look
        ).stdout.split()
    cluster.slurm.run("scancel", str(job))
    assert sorted(seen) == ["node1", "node2"]


def test_ssh_reaches_each_host_by_name(cluster: Cluster) -> None:
    said = [
        subprocess.run(
            ["ssh", "-F", str(cluster.ssh_config), host.name, "hostname"],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout
        for host in cluster.hosts
    ]
    assert said == [f"{host.name}\n" for host in cluster.hosts]


def test_links_are_cut_deafened_blocked_and_healed(cluster: Cluster) -> None:
    host = cluster[2]
    answers = {"before": reaches(cluster, 2)}
    for name, fault in (
        ("cut", host.cut),
        ("deaf", host.deaf),
        ("blocked", lambda: host.blocks("22")),
    ):
        fault()
        answers[name] = reaches(cluster, 2, within_s=1)
        host.healed()
    answers["after"] = reaches(cluster, 2, within_s=5)
    assert answers == {"before": True, "cut": False, "deaf": False, "blocked": False, "after": True}


def test_a_delayed_link_takes_its_time(cluster: Cluster) -> None:
    ask = (
        "import socket, time; began = time.monotonic();"
        f" socket.create_connection(({cluster[4].address!r}, 22), 5); print(time.monotonic() -"
        " began)"
    )
    quick = float(cluster[1].run("python3", "-c", ask).stdout)
    cluster[4].delayed(100)
    slow = float(cluster[1].run("python3", "-c", ask).stdout)
    assert (quick < 0.1, slow >= 0.2) == (True, True)


def test_a_stopped_host_accepts_and_says_nothing(cluster: Cluster) -> None:
    cluster[3].stop()
    silent = not reaches(cluster, 3, within_s=1)
    cluster[3].resume()
    assert (silent, reaches(cluster, 3)) == (True, True)


def test_a_host_has_its_own_small_shared_memory(cluster: Cluster) -> None:
    assert cluster[1].run("df", "--output=size", "-B1M", "/dev/shm").stdout.split()[1] == "256"
