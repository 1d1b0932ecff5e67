"""File systems that answer, and one that never does (a real mount, where we are root)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from trainprobe.case import Case
from trainprobe.collect import child_programs
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import mounts
from trainprobe.collect.collectors.mounts import read_mounts
from trainprobe.collect.members import Member
from trainprobe.facts import Mount, read

Start = Callable[..., "subprocess.Popen[bytes]"]

SLEEPER = "import time; print('ready', flush=True); time.sleep(600)"
MOUNTINFO = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 0:47 / {folder} rw - nfs4 server:/export/data rw,vers=4.2
31 27 0:48 / /nowhere rw - lustre mds@tcp:/scratch rw
32 27 0:49 / /auto rw - autofs systemd-1 rw
33 27 0:50 / /proc rw - proc proc rw
"""


def host(folder: Path, pid: int, state: str, mountinfo: str) -> str:
    base = folder / str(pid)
    (base / "task" / str(pid)).mkdir(parents=True)
    (base / "fd").mkdir()
    (base / "ns").mkdir()
    (base / "ns" / "mnt").symlink_to("mnt:[1]")
    (folder / "self" / "ns").mkdir(parents=True)
    (folder / "self" / "ns" / "mnt").symlink_to("mnt:[1]")
    (base / "cwd").symlink_to("/")
    (base / "fd" / "3").symlink_to(f"{folder}/data/train.arrow")
    (base / "mountinfo").write_text(mountinfo)
    (base / "task" / str(pid) / "stat").write_text(
        f"{pid} (python) {state} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1 2 3"
    )
    return str(folder)


@pytest.mark.parametrize(("state", "root"), [("S", "not-tried"), ("D", "answered")])
def test_remote_mounts_are_asked_and_local_ones_where_somebody_hangs(
    tmp_path: Path, state: str, root: str
) -> None:
    (tmp_path / "data").mkdir()
    proc = host(tmp_path, 70, state, MOUNTINFO.format(folder=tmp_path / "data"))
    seen = read_mounts([Member(0, 70)], 1.0, proc)
    assert seen.outcome == "ok"
    rows = {row["fstype"]: row for row in seen.data["mounts"]}
    assert set(rows) == {"ext4", "nfs4", "lustre"}  # autofs would mount something if asked
    assert (rows["nfs4"]["probe"]["outcome"], rows["nfs4"]["used_by"], rows["nfs4"]["remote"]) == (
        "answered",
        [70],
        True,
    )
    assert (rows["lustre"]["probe"]["outcome"], rows["lustre"]["used_by"]) == ("failed", [])
    assert rows["lustre"]["probe"]["reason"] == "No such file or directory"
    assert rows["ext4"]["probe"]["outcome"] == root


@pytest.mark.parametrize(("shared", "outcome"), [(True, "answered"), (False, "not-tried")])
def test_anothers_hidden_namespace_is_asked_only_where_it_is_ours(
    tmp_path: Path, shared: bool, outcome: str
) -> None:
    (tmp_path / "data").mkdir()
    mountinfo = MOUNTINFO.format(folder=tmp_path / "data")
    proc = host(tmp_path, 70, "S", mountinfo)
    (tmp_path / "70" / "ns" / "mnt").unlink()
    (tmp_path / "self" / "mountinfo").write_text(mountinfo if shared else "")
    rows = {
        row["fstype"]: row["probe"]
        for row in read_mounts([Member(0, 70)], 1.0, proc).data["mounts"]
    }
    assert rows["nfs4"]["outcome"] == outcome
    assert ("hidden" in rows["nfs4"]["reason"]) != shared


def test_a_process_that_is_gone_has_no_mounts() -> None:
    assert read_mounts([Member(0, 2**22 - 3)], 0.2).outcome == "unavailable"


@pytest.fixture
def dead_mount(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("a mount that never answers needs root and /dev/fuse")
    servers: list[subprocess.Popen[str]] = []

    def mount(how: str) -> Path:
        folder = tmp_path / how
        folder.mkdir()
        server = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/programs/dead_mount.py"), str(folder), how],
            stdout=subprocess.PIPE,
            text=True,
        )
        servers.append(server)
        assert server.stdout is not None
        if server.stdout.readline() != "ready\n":
            pytest.skip("this kernel lets nobody mount here")
        return folder

    yield mount
    for server in servers:
        server.terminate()
        server.wait(10)
        assert server.stdout is not None
        server.stdout.close()


@pytest.mark.root
@pytest.mark.parametrize("how", ["deaf", "asleep"])
def test_a_dead_mount_is_named_and_does_not_hold_us(
    case: Case, dead_mount: Callable[[str], Path], start: Start, how: str
) -> None:
    folder = dead_mount(how)
    child = start(SLEEPER)
    began = time.monotonic()
    (evidence,) = collect(case, mounts.COLLECTOR, JobView([Member(0, child.pid)]), 0.5)
    assert time.monotonic() - began < 2.5
    (mount,) = [one for one in read([evidence]).of(Mount) if one.path == str(folder)]
    assert (mount.probe, mount.fstype, mount.remote, mount.used_by) == (
        "timed_out",
        "fuse",
        True,
        (),
    )
    assert mount.reason.startswith("the file system gave no answer")
    assert ("SIGKILL" in mount.reason) == (how == "asleep")


def test_nonsense_from_the_child_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "mounts_child.py"
    program.write_text(
        'print(\'nonsense\'); print(\'[1]\'); print(\'{"path": "/a", "outcome": "great"}\')'
    )
    monkeypatch.setattr(child_programs, "HERE", str(tmp_path))
    one: dict[str, Any] = {}
    mounts._ask({"/a": one}, 0.2)
    assert one["probe"]["outcome"] == "timed_out"
