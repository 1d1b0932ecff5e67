"""Commands of fixes for a job on several hosts: each is said for the host that it is typed on,
with plain pids.
"""

from __future__ import annotations

import pytest

from trainprobe.causes.phrases import at_its_host
from trainprobe.model.pids import HostPid
from trainprobe.waits.divergence import claims_say

ONE, TWO, OTHER = HostPid(24, "node3", 1), HostPid(25, "node3", 1), HostPid(24, "gpu-1.cluster", 2)


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (f"kill {ONE}", ("on node3: kill 24",)),
        (
            f"kill -CONT {ONE} {OTHER} {TWO}",
            ("on node3: kill -CONT 24 25", "on gpu-1.cluster: kill -CONT 24"),
        ),
        (
            f"ps -o pid,ppid -p {ONE},{OTHER}",
            ("on node3: ps -o pid,ppid -p 24", "on gpu-1.cluster: ps -o pid,ppid -p 24"),
        ),
        (f"ps -p {ONE}; ls -l /proc/{ONE}/fd", ("on node3: ps -p 24; ls -l /proc/24/fd",)),
        (f"trainprobe attach {OTHER}.", ("on gpu-1.cluster: trainprobe attach 24.",)),
        ("kill 24", ("kill 24",)),
        ("pip install git+ssh://user1@host/x", ("pip install git+ssh://user1@host/x",)),
    ],
)
def test_a_command_is_told_for_each_host_with_plain_pids(step: str, told: tuple[str, ...]) -> None:
    assert at_its_host(step) == told


def test_a_command_for_one_process_here_and_one_there_is_left_as_it_is() -> None:
    assert at_its_host(f"ps -p {ONE}; ps -p {OTHER}") == ("ps -p 24@node3; ps -p 24@gpu-1.cluster",)


def test_ranks_that_two_hosts_claim_are_told_with_both() -> None:
    says = claims_say({0: ("node1", "node2"), 1: ("node1", "node2")})
    assert says.startswith("Ranks 0 and 1 are on node1, node2: these are several jobs")
