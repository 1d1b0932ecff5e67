"""The kernel log: its three formats, what is kept of it, and who may read it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import kernel_log
from trainprobe.collect.collectors.kernel_log import read_kernel_log

OOM = (
    "Memory cgroup out of memory: Killed process 7852 (python) total-vm:2534616kB,"
    " anon-rss:1807300kB, file-rss:178100kB"
)


def test_records_of_kmsg_with_their_time() -> None:
    content = (
        f"6,339,5140900,-;NET: Registered PF_VSOCK\n3,340,9500000,-;{OOM}\n SUBSYSTEM=memory\n"
        " DEVICE=+x\nnonsense\n4,x\n4,5,y,-;z\n".encode()
    )
    assert kernel_log.parse_kmsg(content, 100.0) == [
        (105.1409, "NET: Registered PF_VSOCK"),
        (109.5, OOM),
    ]


def test_lines_of_dmesg_and_of_the_journal() -> None:
    assert kernel_log.parse_dmesg(
        f"[    9.500000] {OOM}\n<4>[   10.000001] [  T12] x\nno time\n", 100.0
    ) == [(109.5, OOM), (110.000001, "x")]
    assert kernel_log.parse_journal(
        f"1700000000.250000 node7 kernel: {OOM}\n-- No entries --\n"
    ) == [(1700000000.25, OOM)]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (OOM, True),
        (
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,task=python,pid=7852,uid=0",
            True,
        ),
        (
            (
                "python[6727]: segfault at 0 ip 00007ff6 sp 00007fff error 6 in"
                " libpython3.9.so.1.0[114d71,7ff6+202000]"
            ),
            True,
        ),
        (
            (
                "traps: python[81] general protection fault ip:7f sp:7f error:0 in"
                " libtorch_cpu.so[7f+1]"
            ),
            True,
        ),
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.", True),
        ("INFO: task python:311 blocked for more than 122 seconds.", True),
        (" oom_kill_process.cold+0x8/0x8a", False),
        ("EXT4-fs (vda): mounted filesystem", False),
        ("usb 1-1: new high-speed USB device", False),
    ],
)
def test_only_relevant_lines_since_the_moment_are_kept(text: str, kept: bool) -> None:
    seen = kernel_log._result([(50.0, text), (100.0, text)], 99.0, "test")
    assert [line["text"] for line in seen.data["lines"]] == ([text] if kept else [])


def test_a_flood_is_cut_and_counted() -> None:
    seen = kernel_log._result(
        [(100.0 + number, f"{OOM} {number} " + "x" * 9999) for number in range(1000)], 0.0, "test"
    )
    assert len(seen.data["lines"]) == kernel_log.LINES_CAP
    assert seen.data["cut_lines"] == 1000 - kernel_log.LINES_CAP
    assert seen.data["lines"][-1]["at"] == 1099.0
    assert max(len(line["text"]) for line in seen.data["lines"]) == kernel_log.TEXT_CAP


def test_this_machines_log_is_read_or_refused_with_a_reason(case: Case) -> None:
    began = time.monotonic()
    job = JobView(data={"began": time.time() - 3600}, cell="c@1")
    (evidence,) = collect(case, kernel_log.COLLECTOR, job)
    assert time.monotonic() - began < 5
    assert isinstance(evidence.data["lines"], list)
    assert evidence.outcome == "ok" or evidence.reason
    assert all(line["at"] > time.time() - 3700 for line in evidence.data["lines"])


def test_a_user_without_rights_reads_the_way_out(as_nobody: Callable[..., Any]) -> None:
    with open("/proc/sys/kernel/dmesg_restrict", encoding="ascii") as file:
        if file.read().strip() != "1":
            pytest.skip("kernel.dmesg_restrict is off here, so that everybody may read the log")
    seen = as_nobody(lambda: read_kernel_log(time.time() - 10, 3))
    assert seen.outcome == "denied"
    assert "kernel.dmesg_restrict=0" in seen.reason
    assert "group adm" in seen.reason
