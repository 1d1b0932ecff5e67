"""Open files, pipes and FIFOs of real processes, and the mounts that they lie on."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainprobe import mount_table
from trainprobe.case import Case
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import files as open_files
from trainprobe.collect.collectors.files import read_files
from trainprobe.collect.members import Member
from trainprobe.facts import OpenFile, PipeEnd, read

Start = Callable[..., "subprocess.Popen[bytes]"]

WRITER = """
import os, sys, time
data = open(sys.argv[1], "wb")
data.write(b"x" * 1000)
data.flush()
gone = open(sys.argv[1] + ".gone", "w")
os.unlink(sys.argv[1] + ".gone")
fifo = os.open(sys.argv[2], os.O_RDWR)
only = os.pipe()
print("ready", flush=True)
time.sleep(600)
"""
READER = """
import os, sys, time
fifo = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
print("ready", flush=True)
time.sleep(600)
"""
MOUNTINFO = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 0:47 / /data\\040sets rw - nfs4 server:/export/data rw,vers=4.2
31 27 0:48 / /data rw - fuse.sshfs host:/x rw
32 27 0:49 / /sys/fs/fuse/connections rw - fusectl fusectl rw
33 27 0:50 / /mnt rw - xfs /dev/vdb rw
34 33 0:51 / /mnt rw - lustre mds@tcp:/scratch rw
nonsense
"""


def test_files_and_pipes_of_a_process(case: Case, tmp_path: Path, start: Start) -> None:
    fifo = str(tmp_path / "queue")
    os.mkfifo(fifo)
    writer = start(WRITER, str(tmp_path / "model.bin"), fifo, name="writer.py")
    reader = start(READER, fifo, name="reader.py")
    # The reader is a stranger to the job: it is found all the same, with what it is.
    (evidence,) = collect(case, open_files.COLLECTOR, JobView([Member(3, writer.pid)]))
    assert evidence.outcome == "ok"
    assert evidence.data["maps"] > 10
    facts = read([evidence])
    files = {one.path: one for one in facts.of(OpenFile, rank=3)}
    data = files[str(tmp_path / "model.bin")]
    assert (data.kind, data.mode, data.pos, data.size, data.deleted) == (
        "file",
        "w",
        1000,
        1000,
        False,
    )
    assert data.inode == os.stat(data.path).st_ino
    assert files[str(tmp_path / "model.bin.gone")].deleted
    ends = {one.path: one for one in facts.of(PipeEnd)}
    assert reader.pid in ends[fifo].other_pids
    assert ends[fifo].mode == "rw"
    assert any(command.endswith(f"reader.py {fifo}") for command in ends[fifo].others)
    (stdout,) = [one for one in facts.of(PipeEnd) if one.fd == 1]
    assert (stdout.mode, os.getpid() in stdout.other_pids) == ("w", True)
    alone = [one for one in facts.of(PipeEnd) if one.fd not in (0, 1, 2) and one.path != fifo]
    assert {one.mode for one in alone} == {"r", "w"}
    assert {one.other_pids for one in alone} == {()}


def test_a_stopped_or_vanished_process_is_told_of(start: Start) -> None:
    stopped, vanished = (
        start(READER, "/dev/null", name="a.py"),
        start(READER, "/dev/null", name="b.py"),
    )
    os.kill(stopped.pid, signal.SIGSTOP)
    vanished.kill()
    vanished.wait()
    seen = read_files([Member(0, stopped.pid), Member(1, vanished.pid)], 1.0)
    assert [one.outcome for one in seen] == ["ok", "unavailable"]
    assert any(row["path"] == "/dev/null" for row in seen[0].data["open"])
    assert seen[1].reason == f"process {vanished.pid} is gone"


def test_no_time_is_said_so(start: Start) -> None:
    child = start(READER, "/dev/null")
    (seen,) = read_files([Member(0, child.pid)], -1.0)
    assert seen.outcome == "timed_out"


def test_anothers_files_are_hidden_with_a_reason(
    start: Start, as_nobody: Callable[[Callable[[], Any]], Any]
) -> None:
    child = start(READER, "/dev/null")
    (seen,) = as_nobody(lambda: read_files([Member(0, child.pid)], 1.0))
    assert seen.outcome == "denied"
    assert "belongs to root" in seen.reason


def test_which_mount_a_path_lies_on() -> None:
    rows = mount_table.parse(MOUNTINFO)
    assert [(row.fstype, row.remote) for row in rows] == [
        ("ext4", False),
        ("nfs4", True),
        ("fuse.sshfs", True),
        ("fusectl", False),
        ("xfs", False),
        ("lustre", True),
    ]

    def fstype(path: str) -> str:
        found = mount_table.of_path(rows, path)
        assert found is not None
        return found.fstype

    assert fstype("/data sets/a.arrow") == "nfs4"
    assert fstype("/data/a.arrow") == "fuse.sshfs"
    assert fstype("/database/a") == "ext4"
    assert fstype("/mnt") == "lustre"  # mounted over the other
    assert mount_table.of_path([], "/x") is None
    assert rows[1].source == "server:/export/data"
