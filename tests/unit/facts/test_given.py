"""Surroundings of a job: from texts to named values with numbers."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest

from trainprobe.case import Case
from trainprobe.facts.reading import read
from trainprobe.facts.settings import Given
from trainprobe.logs.environment_reports import read_environment_report, record_launch_environment
from trainprobe.saved_case import read_case


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            (
                "open files                      (-n) 1024\nmax locked memory       (kbytes, -l)"
                " 64\nmax user processes              (-u) 4096\nstack size              (kbytes,"
                " -s) 8192\nvirtual memory          (kbytes, -v) unlimited\n"
            ),
            {
                "limit.nofile": "1024",
                "limit.memlock_bytes": "65536",
                "limit.nproc": "4096",
                "limit.stack_bytes": str(8 * 2**20),
                "limit.as_bytes": "unlimited",
            },
        ),
        (
            "-n: file descriptors                1024\n-l: locked-in-memory size (kbytes)  64\n",
            {"limit.nofile": "1024", "limit.memlock_bytes": "65536"},
        ),
        (
            "nofiles              1024\nlocked memory(kbytes) 64\n",
            {"limit.nofile": "1024", "limit.memlock_bytes": "65536"},
        ),
        (
            (
                "Limit                     Soft Limit           Hard Limit           Units\nMax"
                " locked memory         65536                unlimited            bytes\nMax open"
                " files            1024                 524288               files\n"
            ),
            {"limit.memlock_bytes": "65536", "limit.nofile": "1024"},
        ),
        (
            (
                "NOFILE     max number of open files                1024   524288 files\nMEMLOCK   "
                " max locked-in-memory address space     65536    65536 bytes\n"
            ),
            {"limit.nofile": "1024", "limit.memlock_bytes": "65536"},
        ),
        ("$ ulimit -n 1024\n", {"limit.nofile": "1024"}),
        (
            "tmpfs            64M     0   64M   0% /dev/shm\n",
            {"shm.size_bytes": str(64 * 2**20), "shm.free_bytes": str(64 * 2**20)},
        ),
        (
            "shm  65536 1024 64512 2% /dev/shm\n",
            {"shm.size_bytes": str(64 * 2**20), "shm.free_bytes": str(63 * 2**20)},
        ),
        (
            "tmpfs          tmpfs   1.0G     0  1.0G   0% /dev/shm\n",
            {"shm.size_bytes": str(2**30), "shm.free_bytes": str(2**30)},
        ),
        ("/dev/sda1        100G   50G   50G  50% /\n", {}),
        ("Mem:          503Gi        10Gi       480Gi\n", {"memory.total_bytes": str(503 * 2**30)}),
        (
            (
                "1: lo: <LOOPBACK,UP>\n    inet 127.0.0.1/8 scope host lo\n2: ib0@NONE: <UP>\n   "
                " inet 10.0.0.7/24\n"
            ),
            {"interface.lo": "127.0.0.1", "interface.ib0": "10.0.0.7"},
        ),
        (
            "eth0: flags=4163<UP>  mtu 1500\n        inet 10.0.0.7  netmask 255.255.255.0\n",
            {"interface.eth0": "10.0.0.7"},
        ),
        ("docker0          DOWN           172.17.0.1/16\n", {"interface.docker0": "172.17.0.1"}),
        (
            "GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 1: NVIDIA H200 (UUID: GPU-2)\n",
            {"gpu.0": "NVIDIA H200", "gpu.1": "NVIDIA H200", "gpus_per_node": "2"},
        ),
        (
            "| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |\n",
            {"version.driver": "550.54.15", "version.cuda_driver": "12.4"},
        ),
        (
            (
                "PyTorch version: 2.1.0+cu118\nCUDA used to build PyTorch: 11.8\nROCM used to build"
                " PyTorch: N/A\nPython version: 3.10.12 (main)\nNvidia driver version:"
                " 535.104.05\n[pip3] numpy==1.26.4\n"
            ),
            {
                "version.torch": "2.1.0+cu118",
                "version.cuda": "11.8",
                "version.python": "3.10.12",
                "version.driver": "535.104.05",
                "version.numpy": "1.26.4",
            },
        ),
        (
            (
                "- `transformers` version: 4.44.0\n- PyTorch version (GPU?): 2.4.0+cu121 (True)\n-"
                " Python version: 3.10.12\n"
            ),
            {
                "version.transformers": "4.44.0",
                "version.torch": "2.4.0+cu121",
                "version.python": "3.10.12",
            },
        ),
        (
            (
                "torch version .................... 2.1.0\nshared memory (/dev/shm) size .... 64.00"
                " MB\n"
            ),
            {"version.torch": "2.1.0", "shm.size_bytes": str(64 * 2**20)},
        ),
        (
            "torch==2.1.0+cu118\nnvidia-nccl-cu12==2.20.5\nsecret-package==1.0\n",
            {
                "version.torch": "2.1.0+cu118",
                "version.cuda": "11.8",
                "version.nvidia-nccl-cu12": "2.20.5",
                "version.nccl": "2.20.5",
            },
        ),
        (
            "Package      Version\n------------ -------\ndatasets     4.1.0\n",
            {"version.datasets": "4.1.0"},
        ),
        ("Linux node7 5.4.0-150-generic #167-Ubuntu SMP\n", {"kernel": "5.4.0-150-generic"}),
        (
            'export NCCL_SOCKET_IFNAME="ib0"\ndeclare -x MASTER_ADDR="node1"\nRANK=0\n',
            {"env.NCCL_SOCKET_IFNAME": "ib0", "env.MASTER_ADDR": "node1", "env.RANK": "0"},
        ),
        (
            "HF_TOKEN=hf_0123456789abcdefghij\nWANDB_API_KEY=0123\nAWS_SECRET_ACCESS_KEY=x\nHOME=/home/ann\nTOKENIZERS_PARALLELISM=true\n",
            {"env.TOKENIZERS_PARALLELISM": "true"},
        ),
        ("WORLD_SIZE=16\n", {"env.WORLD_SIZE": "16", "world_size": "16"}),
        ('{"NCCL_DEBUG": "INFO", "HF_TOKEN": "x"}', {"env.NCCL_DEBUG": "INFO"}),
        (
            (
                '{"schema": "trainprobe.environment/1", "host": "node7", "values": {"cpus": "8",'
                ' "env.HF_TOKEN": "x", "env.HOME": "/h"}}'
            ),
            {"cpus": "8"},
        ),
        (
            (
                "limit.nofile                 1024\nenv.NCCL_DEBUG               INFO\nenv.HF_TOKEN"
                "                 x\n"
            ),
            {"limit.nofile": "1024", "env.NCCL_DEBUG": "INFO"},
        ),
        (
            (
                "memory.limit_bytes=34359738368\nlimit.nofile: 1024\nshm.size_bytes ="
                " 64M\nversion.torch=2.4.0\n"
            ),
            {
                "memory.limit_bytes": "34359738368",
                "limit.nofile": "1024",
                "shm.size_bytes": str(64 * 2**20),
                "version.torch": "2.4.0",
            },
        ),
        (
            "memory.limit_bytes=32 GiB\nkernel=rbf\nnodes=x\nenv.step=3\n",
            {"memory.limit_bytes": str(32 * 2**30)},
        ),
        ("step 1 loss 3.0\nhello world\nx = 3\nif a == b:\n", {}),
        (
            (
                "ray: it broke\ndriver: John\npython: can't open file 'train.py': [Errno 2] No such"
                " file or directory\n"
            ),
            {},
        ),
        ("{broken", {}),
    ],
)
def test_values_of_texts(text: str, values: dict[str, str]) -> None:
    assert read_environment_report(text) == values


def test_given_becomes_facts_with_numbers(tmp_path: Path) -> None:
    limits = tmp_path / "limits.txt"
    limits.write_text(
        "open files                      (-n) 1024\nvirtual memory          (kbytes, -v)"
        " unlimited\n"
    )
    with Case.create(str(tmp_path / "case"), command="explain", argv=["explain"]) as case:
        record_launch_environment(case, [str(limits)], 2, 8)
    facts = {fact.name: fact for fact in read(read_case(str(tmp_path / "case")).evidence).of(Given)}
    assert facts["limit.nofile"].number == 1024
    assert facts["limit.nofile"].source == "env-file"
    assert facts["limit.as_bytes"].number == math.inf
    assert (facts["nodes"].number, facts["gpus_per_node"].number, facts["world_size"].number) == (
        2,
        8,
        16,
    )
    assert facts["nodes"].source == "command-line"


def test_what_collect_env_wrote_keeps_its_host(tmp_path: Path) -> None:
    file = tmp_path / "node7.json"
    file.write_text(
        json.dumps(
            {
                "schema": "trainprobe.environment/1",
                "host": "node7",
                "values": {"limit.nofile": "1024"},
            }
        )
    )
    with Case.create(str(tmp_path / "case"), command="explain", argv=["explain"]) as case:
        record_launch_environment(case, [str(file)], None, None)
    (fact,) = read(read_case(str(tmp_path / "case")).evidence).of(Given)
    assert (fact.host, fact.source, fact.number) == ("node7", "collect-env", 1024)


@pytest.mark.parametrize("content", ["", "hello\n", None])
def test_a_file_that_tells_nothing_is_a_look_that_failed(
    tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "nothing.txt"
    if content is not None:
        file.write_text(content)
    limits = tmp_path / "limits.txt"
    limits.write_text("open files                      (-n) 1024\n")
    with Case.create(str(tmp_path / "case"), command="explain", argv=["explain"]) as case:
        record_launch_environment(case, [str(file), str(limits)], None, None)
    facts = read(read_case(str(tmp_path / "case")).evidence)
    (refusal,) = facts.refused("given")
    assert refusal.reason.startswith(
        f"{file} {'cannot be read' if content is None else 'says nothing'}"
    )
    assert [fact.name for fact in facts.of(Given)] == ["limit.nofile"]


@pytest.mark.parametrize(
    "unit",
    ["A=", "a ", "- `a ", "GPU 0: ", "1 ", "[pip] a ", "a.", "Max a ", "tmpfs 1 ", "env.a  "],
)
def test_no_line_takes_long(unit: str) -> None:
    began = time.process_time()
    read_environment_report(unit * (100_000 // len(unit)))
    assert time.process_time() - began < 1.0
