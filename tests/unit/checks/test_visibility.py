"""What the values of a machine mean for a look: yes, in part or no, and the command."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainprobe.checks.visibility import LOOSEN, conclude
from trainprobe.model.visibility import Tried, Visibility, VisibilityLine

ROOTS = "000001ffffffffff"
GOOD = Visibility(
    host="node1",
    user="alice",
    uid=1000,
    capabilities="0000000000000000",
    yama=0,
    py_spy="/opt/bin/py-spy",
    dump=Tried("ok", found="py-spy 0.4.1"),
    kernel_log=Tried("ok", found="/dev/kmsg"),
    gpus=Tried("ok", found="8 GPUs, driver 570.1"),
    cgroups={"memory": 2, "pids": 2},
    programs={"srun": "/usr/bin/srun", "ssh": "/usr/bin/ssh"},
    python="/opt/python",
    python_version="3.12.1",
    torch="2.9.0+cu128",
    cuda="12.8",
    nccl=True,
    variables={"TORCH_FR_BUFFER_SIZE": "2000"},
)


def line(here: Visibility, name: str) -> VisibilityLine:
    (found,) = (line for line in conclude(here) if line.id == name)
    return found


def test_where_all_is_seen_nothing_is_to_be_done() -> None:
    lines = conclude(GOOD)
    assert {line.id: line.seen for line in lines if line.seen != "yes"} == {
        "others": "no",
        "ras": "unused",
        "kubectl": "unused",
    }
    assert [line.id for line in lines if line.remedy] == ["others"]
    assert all(line.says.endswith(".") for line in lines)


@pytest.mark.parametrize(
    ("change", "name", "seen", "remedy"),
    [
        ({"yama": 1, "dump": Tried("denied", "scope is 1")}, "stacks", "no", LOOSEN),
        (
            {"container": "Docker (/.dockerenv)", "dump": Tried("denied", "no capability")},
            "stacks",
            "no",
            "docker run --cap-add SYS_PTRACE IMAGE",
        ),
        ({"py_spy": "", "dump": Tried("unavailable", "no py-spy")}, "stacks", "no", "pip install py-spy"),
        ({"uid": 0, "capabilities": ROOTS}, "others", "yes", ""),
        ({"uid": 0}, "others", "no", "docker run --cap-add SYS_PTRACE IMAGE"),
        ({"hidepid": "2"}, "proc", "part", "sudo mount -o remount,hidepid=0 /proc"),
        ({"hidepid": "2", "uid": 0}, "proc", "yes", ""),
        ({"kernel_log": Tried("denied", "closed")}, "kernel-log", "no", "sudo sysctl kernel.dmesg_restrict=0"),
        ({"cgroups": {"pids": 1}}, "cgroups", "part", "mount | grep cgroup"),
        ({"cgroups": {}}, "cgroups", "no", "mount | grep cgroup"),
        ({"gpus": Tried("unavailable", "no driver")}, "gpus", "no", "nvidia-smi"),
        ({"gpus": Tried("unavailable", "no driver"), "cuda": ""}, "gpus", "unused", ""),
        ({"torch": "", "no_torch": "no torch"}, "torch", "no", "/opt/python -m pip install torch"),
        ({"variables": {"TORCH_FR_BUFFER_SIZE": "0"}}, "recorder", "no", "unset TORCH_FR_BUFFER_SIZE"),
        ({"torch": "2.1.2"}, "recorder", "no", "/opt/python -m pip install 'torch>=2.2'"),
        ({"programs": {}, "slurm_job": "4711"}, "slurm", "no", "srun --jobid=4711 --overlap --pty trainprobe attach"),
        ({"programs": {"kubectl": "/bin/kubectl"}}, "kubectl", "no", "kubectl config view"),
        ({"programs": {"kubectl": "/bin/kubectl"}, "kube": "x"}, "kubectl", "part", "kubectl auth can-i create pods/exec"),
        ({"ras": True, "ras_port": 28028}, "ras", "yes", ""),
    ],
)  # fmt: skip
def test_what_hides_something_is_named_with_a_command(
    change: dict[str, object], name: str, seen: str, remedy: str
) -> None:
    found = line(replace(GOOD, **change), name)  # type: ignore[arg-type]
    assert (found.seen, found.remedy) == (seen, remedy)


def test_both_versions_of_cgroups_are_told_apart() -> None:
    says = line(replace(GOOD, cgroups={"memory": 1, "cpu": 2, "pids": 1}), "cgroups").says
    assert says == "cgroup v1: memory, pids; cgroup v2: cpu."


def test_capabilities_that_are_no_number_are_none() -> None:
    assert line(replace(GOOD, capabilities="zz"), "others").seen == "no"
