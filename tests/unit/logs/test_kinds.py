"""What a file is, and what becomes of those that are no logs."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from trainprobe.case import Case
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.kernel_logs import OomKill, Xid
from trainprobe.facts.reading import read
from trainprobe.logs.kinds import (
    kind_of,
    look_at_error_text,
    look_at_kernel_text,
    record_environment_file,
)
from trainprobe.saved_case import read_case

LOG = (
    'step 1 loss 3.0\nTraceback (most recent call last):\n  File "train.py", line 3, in <module>\n '
    "   main()\nRuntimeError: no\n"
)
SACCT = """JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
------------ ---------- ---------- ---------- ---------- ---------- --------
4242              train        gpu      group         64 OUT_OF_ME+    0:125
4242.0           python                 group         64 OUT_OF_ME+    0:125
"""
DMESG = """[    0.000000] Linux version 6.1.0
[12345.678901] NVRM: Xid (PCI:0000:0a:00): 79, pid=4242, name=python, GPU has fallen off the bus.
[12346.000000] Memory cgroup out of memory: Killed process 4242 (python) total-vm:1kB, anon-rss:2048kB, file-rss:0kB
"""
MESSAGES = """Nov 21 10:11:10 node7 systemd[1]: Started Session 3 of user ann.
Nov 21 10:11:12 node7 kernel: [12345.678901] NVRM: Xid (PCI:0000:0a:00): 79, pid=4242, name=python, GPU has fallen off the bus.
Nov 21 10:11:13 node7 sshd[42]: Accepted publickey for ann
"""
ERROR = json.dumps(
    {
        "message": {
            "message": "ValueError: no",
            "extraInfo": {
                "py_callstack": 'Traceback (most recent call last):\n  File "train.py", line 3, in main\n    go()\nValueError: no\n',
                "timestamp": "1732183872",
            },
        }
    }
)
PYSPY = (
    "Process 4242: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\nThread 4242 (idle):"
    ' "MainThread"\n    all_reduce (torch/distributed/distributed_c10d.py:2501)\n    main'
    " (train.py:42)\n"
)
SMI = """Thu Nov 21 10:11:12 2024
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|   0  NVIDIA H200                    On  |   00000000:0A:00.0 Off |                    0 |
"""


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (LOG, "log"),
        ("hello\n", "log"),
        ("RANK=0\nNCCL_DEBUG=INFO\nSegmentation fault (core dumped)\n", "log"),
        (
            (
                "torch==2.1.0\nNVIDIA-SMI has failed because it could not communicate with the"
                " NVIDIA driver.\n"
            ),
            "log",
        ),
        ("just some words\nand others\n", "log"),
        ("RANK=0 WORLD_SIZE=2 starting\n" + LOG, "log"),
        ("NCCL_DEBUG=INFO\n" + "node7:42:43 [0] NCCL INFO Bootstrap : Using eth0\n" * 3, "log"),
        ("[12345.678901] NVRM: Xid 79\n" + LOG * 3, "log"),
        ('{"step": 1, "loss": 3.0}\n{"step": 2, "loss": 2.0}\n', "log"),
        ('{"log":"hello\\n","stream":"stderr","time":"2024-11-21T10:11:12Z"}\n', "log"),
        (SACCT, "sacct"),
        ("JobID|State|ExitCode|Elapsed|NodeList\n4242|TIMEOUT|0:0|02:00:00|node[1-2]\n", "sacct"),
        ("4242|train|gpu|FAILED|1:0\n4242.batch|batch||FAILED|1:0\n", "sacct"),
        (
            "JobId=4242 JobName=train\n   JobState=TIMEOUT Reason=TimeLimit Dependency=(null)\n",
            "sacct",
        ),
        (DMESG, "kernel-log"),
        (MESSAGES, "kernel-log"),
        (
            (
                "[Thu Nov 21 10:11:12 2024] NVRM: Xid (PCI:0000:0a:00): 79, GPU has fallen off the"
                " bus.\n"
            ),
            "kernel-log",
        ),
        ("1732183872.5 node7 kernel: python[42]: segfault at 0 ip 0\n", "kernel-log"),
        (ERROR, "error-file"),
        (
            (
                "core file size          (blocks, -c) 0\nopen files                      (-n)"
                " 1024\nmax locked memory       (kbytes, -l) 64\n"
            ),
            "given",
        ),
        ("open files                      (-n) 1024\n", "given"),
        ("NAME=x\nNCCL_DEBUG=INFO\nPATH=/usr/bin\n", "given"),
        (
            (
                "Collecting environment information...\nPyTorch version: 2.1.0+cu118\nIs debug"
                " build: False\n\nVersions of relevant libraries:\n[pip3] torch==2.1.0\n"
            ),
            "given",
        ),
        ("torch==2.1.0\nnumpy==1.26.4\n", "given"),
        (SMI, "given"),
        (
            (
                "Filesystem      Size  Used Avail Use% Mounted on\ntmpfs            64M     0   64M"
                "   0% /dev/shm\n"
            ),
            "given",
        ),
        ("1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536\n    inet 127.0.0.1/8 scope host lo\n", "given"),
        (
            '{\n "schema": "trainprobe.environment/1",\n "host": "node7",\n "values": {}\n}\n',
            "given",
        ),
        ('{"NCCL_DEBUG": "INFO", "RANK": "0", "WORLD_SIZE": "2"}', "given"),
        ("rank=1: before the forward pass (micro=2)\n", "log"),
        (PYSPY, "stacks"),
        ("", "empty"),
        ("\n \n", "empty"),
    ],
)
def test_kinds(content: str, kind: str) -> None:
    assert kind_of(content.encode(), "some.file") == kind


def test_kinds_of_bytes() -> None:
    assert (
        kind_of(pickle.dumps({"pg_status": {}, "entries": [{"profiling_name": "nccl:all_reduce"}]}))
        == "flight-recorder"
    )
    assert kind_of(b'{"pg_config": {}, "entries": []}') == "flight-recorder"
    assert kind_of(bytes(range(256)) * 20) == "binary"
    assert kind_of(b"RANK=0\0NCCL_DEBUG=INFO\0PATH=/usr/bin\0HOME=/h\0") == "given"
    assert kind_of(LOG.encode("utf-16")) == "log"
    assert kind_of(b'{"message": {"mess', "attempt_0/3/error.json") == "error-file"
    assert kind_of(b"\xff\xfe\x00broken\n") in ("binary", "log")


def _case(tmp_path: Path) -> Case:
    return Case.create(str(tmp_path / "case"), command="explain", argv=["explain"])


def test_a_kernel_log_of_another_day(tmp_path: Path) -> None:
    with _case(tmp_path) as case:
        look_at_kernel_text(case, "node7/messages", MESSAGES.splitlines(), newest=1732190000.0)
        look_at_kernel_text(case, "dmesg.txt", DMESG.splitlines())
    evidence = read_case(str(tmp_path / "case")).evidence
    facts = read(evidence)
    dated, undated = facts.of(Xid)
    assert (dated.code, undated.code, undated.at) == (79, 79, None)
    assert dated.at == pytest.approx(1732183872.0)
    assert facts.of(OomKill)[0].in_cgroup
    assert evidence[0].subject.host == "node7"
    assert evidence[1].data["lines"][0]["boot_s"] == pytest.approx(12345.678901)


def test_an_error_file_has_the_rank_of_its_path(tmp_path: Path) -> None:
    with _case(tmp_path) as case:
        look_at_error_text(case, "logs/x/attempt_0/3/error.json", ERROR.encode())
        look_at_error_text(case, "attempt_0/4/error.json", b'{"message": {"mess')
    first, second = read_case(str(tmp_path / "case")).evidence
    assert (first.subject.rank, first.outcome, second.subject.rank, second.outcome) == (
        3,
        "ok",
        4,
        "partial",
    )
    raised = read([first]).of(RankException)
    assert [(one.rank, one.type, one.at) for one in raised] == [(3, "ValueError", 1732183872.0)]


def test_an_environment_among_the_logs(tmp_path: Path) -> None:
    with _case(tmp_path) as case:
        record_environment_file(
            case, "env.txt", b"RANK=3\0NCCL_DEBUG=INFO\0HF_TOKEN=hf_0123456789abcdefghij\0"
        )
    (record,) = read_case(str(tmp_path / "case")).evidence
    assert record.data["values"] == {"env.RANK": "3", "env.NCCL_DEBUG": "INFO"}
    assert record.data["source"] == "log"
