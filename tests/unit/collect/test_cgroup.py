"""Control groups of both versions, from made-up trees and from the machine's own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trainprobe.case import Case
from trainprobe.collect import cgroup
from trainprobe.collect.collectors.cgroup import CgroupWatch

Start = Callable[..., "subprocess.Popen[bytes]"]
MIB = 2**20
HOG = """
import os, sys
with open(sys.argv[1] + "/cgroup.procs", "w") as procs:
    procs.write(str(os.getpid()))
print("ready", flush=True)
sys.stdin.readline()
hoard = []
while True:
    hoard.append(bytearray(1 << 20))
"""


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


def mount(point: Path, version: int, root: str = "/", names: str = "rw,memory") -> str:
    kind = "cgroup2 cgroup2 rw" if version == 2 else f"cgroup cgroup {names}"
    return f"40 30 0:30 {root} {point} rw,relatime shared:1 - {kind}\n"


def test_the_smallest_limit_up_the_tree_counts_in_version_1(tmp_path: Path) -> None:
    memory, cpu, pids = tmp_path / "memory", tmp_path / "cpu", tmp_path / "pids"
    write(memory, memory__limit_in_bytes="9223372036854771712")
    write(
        memory / "job",
        memory__limit_in_bytes=str(100 * MIB),
        memory__usage_in_bytes=str(60 * MIB),
        memory__max_usage_in_bytes=str(99 * MIB),
    )
    write(
        memory / "job",
        memory__stat="cache 5\ntotal_inactive_file 4096",
        memory__oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 1",
    )
    write(
        memory / "job" / "task",
        memory__limit_in_bytes="9223372036854771712",
        memory__usage_in_bytes="7",
        memory__oom_control="oom_kill 2",
    )
    write(memory / "job" / "task" / "below", memory__oom_control="oom_kill 3")
    write(cpu / "job", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    write(cpu, cpu__cfs_quota_us="150000", cpu__cfs_period_us="100000")
    write(pids / "job", pids__max="500", pids__current="12")
    mounts = (
        mount(memory, 1) + mount(cpu, 1, names="rw,cpu,cpuacct") + mount(pids, 1, names="rw,pids")
    )
    groups = cgroup.resolve("4:memory:/job/task\n3:pids:/job\n2:cpu,cpuacct:/job\n0::/\n", mounts)
    seen = cgroup.snapshot(groups)
    assert seen is not None
    assert (seen.version, seen.limit_bytes, seen.limit_path) == (1, 100 * MIB, str(memory / "job"))
    assert (seen.current_bytes, seen.peak_bytes, seen.reclaimable_bytes) == (
        60 * MIB,
        99 * MIB,
        4096,
    )
    assert seen.oom_kill == 5, (
        "kills of the groups below count, those of the group above are not ours"
    )
    assert (seen.pids_max, seen.pids_current, seen.cpu_quota) == (500, 12, 1.5)


def test_version_2_with_a_limit_on_the_parent(tmp_path: Path) -> None:
    write(tmp_path, cgroup__controllers="cpu memory pids")
    write(
        tmp_path / "pod",
        cgroup__controllers="cpu memory pids",
        memory__max=str(64 * MIB),
        memory__current="1000",
        memory__peak="2000",
    )
    write(
        tmp_path / "pod",
        pids__max="max",
        cpu__max="200000 100000",
        memory__stat="anon 1\ninactive_file 10",
    )
    write(
        tmp_path / "pod" / "c",
        cgroup__controllers="memory",
        memory__max="max",
        memory__events="low 0\noom 4\noom_kill 3",
        pids__max="9",
    )
    write(
        tmp_path / "pod" / "c",
        memory__pressure=(
            "some avg10=1.50 avg60=0.30 avg300=0.00 total=5\nfull avg10=0.25 avg60=0.00 avg300=0.00"
            " total=1"
        ),
    )
    groups = cgroup.resolve("0::/pod/c\n", mount(tmp_path, 2))
    seen = cgroup.snapshot(groups)
    assert seen is not None
    assert (seen.version, seen.limit_bytes, seen.current_bytes, seen.peak_bytes, seen.oom_kill) == (
        2,
        64 * MIB,
        1000,
        2000,
        3,
    )
    assert (seen.pids_max, seen.cpu_quota, seen.reclaimable_bytes) == (9, 2.0, 10)
    assert seen.pressure["memory"] == {
        "some_avg10": 1.5,
        "some_avg60": 0.3,
        "full_avg10": 0.25,
        "full_avg60": 0.0,
    }


def test_an_empty_version_2_beside_version_1_is_no_absence_of_limits(tmp_path: Path) -> None:
    old, new = tmp_path / "memory", tmp_path / "unified"
    write(old / "job", memory__limit_in_bytes=str(MIB))
    write(new, cgroup__controllers="")
    mounts = mount(new, 2) + mount(old, 1)
    seen = cgroup.snapshot(cgroup.resolve("4:memory:/job\n0::/\n", mounts))
    assert seen is not None
    assert (seen.version, seen.limit_bytes) == (1, MIB)
    # And alone, an empty version 2 controls no memory at all, which is not the same as "no limit".
    assert cgroup.resolve("0::/\n", mounts).memory is None
    assert cgroup.snapshot(cgroup.resolve("0::/\n", mounts)) is None


def test_paths_of_containers(tmp_path: Path) -> None:
    write(tmp_path, memory__limit_in_bytes=str(MIB))
    write(tmp_path / "inner", memory__limit_in_bytes=str(2 * MIB))
    # Docker without a cgroup namespace: the host's path, of which only the container's part is
    # mounted.
    docker = cgroup.resolve("4:memory:/docker/abc\n", mount(tmp_path, 1, root="/docker/abc")).memory
    assert docker == cgroup.Group(1, str(tmp_path), str(tmp_path))
    inner = cgroup.resolve(
        "4:memory:/docker/abc/inner\n", mount(tmp_path, 1, root="/docker/abc")
    ).memory
    assert inner is not None
    assert inner.folder == str(tmp_path / "inner")
    for outside in ("/../other", "/elsewhere", "/docker/abcdef"):
        group = cgroup.resolve(
            f"4:memory:{outside}\n", mount(tmp_path, 1, root="/docker/abc")
        ).memory
        assert group is not None
        assert group.folder == str(tmp_path)
    assert (
        cgroup.resolve(
            "4:memory:/docker/abc (deleted)\n", mount(tmp_path, 1, root="/docker/abc")
        ).memory
        is None
    )


@pytest.mark.parametrize("text", ["", "nonsense", "::", "4:memory:/x", "0::/x\n\0\n"])
def test_nonsense_finds_nothing(text: str) -> None:
    assert cgroup.resolve(text, text).memory is None


def test_a_rise_needs_two_counts_of_one_group() -> None:
    before, after = cgroup.Snapshot(1, "/a", oom_kill=2), cgroup.Snapshot(1, "/a", oom_kill=5)
    assert cgroup.rise(before, after) == 3
    assert cgroup.rise(after, before) == 0
    assert cgroup.rise(before, cgroup.Snapshot(1, "/b", oom_kill=5)) is None
    assert cgroup.rise(before, cgroup.Snapshot(1, "/a")) is None
    assert cgroup.rise(None, after) is None


def test_headroom_is_what_the_machine_or_the_limit_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        tmp_path,
        memory__limit_in_bytes=str(100 * MIB),
        memory__usage_in_bytes=str(90 * MIB),
        memory__stat=f"total_inactive_file {5 * MIB}",
    )
    groups = cgroup.resolve("4:memory:/\n", mount(tmp_path, 1))
    monkeypatch.setattr(cgroup, "find", lambda _pid=None: groups)
    assert cgroup.headroom_bytes() == 15 * MIB


def test_this_machine_is_read_without_a_word_about_what_it_is(case: Case) -> None:
    watch = CgroupWatch()
    watch.see([os.getpid(), 2**22 + 1])
    for when in ("before", "after"):
        for evidence in watch.look(case, "c@1", when):
            assert evidence.kind == "cgroup"
            assert evidence.outcome == "ok" or evidence.reason
            assert evidence.data.get("oom_kill_rise") in ((None, 0) if when == "after" else (None,))


@pytest.fixture
def memory_group() -> Iterator[str]:
    """A real memory cgroup of 48 MiB below our own; version 1, where root may simply make one."""
    own = cgroup.find().memory
    if os.geteuid() != 0 or own is None or own.version != 1:
        pytest.skip("needs root and a memory cgroup of version 1")
    folder = os.path.join(own.folder, f"trainprobe-test-{os.getpid()}")
    try:
        os.mkdir(folder)
        Path(folder, "memory.limit_in_bytes").write_text(str(48 * MIB))
        with contextlib.suppress(OSError):  # Without swap accounting there is no such file.
            Path(folder, "memory.memsw.limit_in_bytes").write_text(str(48 * MIB))
    except OSError as error:
        pytest.skip(f"no memory cgroup can be made here: {error}")
    yield folder
    with contextlib.suppress(OSError):
        os.rmdir(folder)


@pytest.mark.root
def test_a_kill_in_a_group_of_its_own_is_told_of_that_process_alone(
    memory_group: str, case: Case, tmp_path: Path
) -> None:
    watch = CgroupWatch()
    program = tmp_path / "hog.py"
    program.write_text(HOG)
    child = subprocess.Popen(
        [sys.executable, str(program), memory_group], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline()
        watch.see([child.pid])
        assert watch.rise_of(child.pid) == 0
        child.stdin.write(b"go\n")
        child.stdin.flush()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        watch.see(
            [child.pid]
        )  # A zombie is shown in another group; what was seen in its life stands.
        assert watch.rise_of(child.pid) == 1
        assert (watch.host_rise() or 0) >= 1
        records = watch.look(case, "import_memory@4", "after")
        (own,) = [record for record in records if record.data["path"] == memory_group]
        assert own.data["oom_kill_rise"] == 1
        assert own.data["limit_bytes"] == 48 * MIB
        assert own.data["peak_bytes"] >= 40 * MIB
    finally:
        child.kill()
        assert child.wait(10) == -9
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
    os.rmdir(memory_group)
    gone = [
        record
        for record in watch.look(case, "import_memory@4", "after")
        if record.data["path"] == memory_group
    ]
    assert gone[0].outcome == "partial"
    assert "is gone" in gone[0].reason


def test_a_snapshot_costs_next_to_nothing() -> None:
    groups = cgroup.find()
    began = time.process_time()
    for _ in range(10):
        cgroup.snapshot(groups)
    assert time.process_time() - began < 1.0


def test_events_of_version_2_and_its_freezer(tmp_path: Path) -> None:
    write(
        tmp_path,
        cgroup__controllers="memory",
        memory__max=str(9 * MIB),
        memory__current="5",
        memory__events="low 0\nhigh 3\nmax 17\noom 0\noom_kill 0",
    )
    write(tmp_path, cgroup__events="populated 1\nfrozen 1")
    seen = cgroup.snapshot(cgroup.resolve("0::/\n", mount(tmp_path, 2)))
    assert seen is not None
    assert (seen.limit_hits, seen.under_oom, seen.frozen) == (17, None, True)


def test_events_of_version_1_and_its_freezer(tmp_path: Path) -> None:
    write(
        tmp_path / "m",
        memory__limit_in_bytes=str(9 * MIB),
        memory__failcnt="4",
        memory__oom_control="oom_kill_disable 1\nunder_oom 1\noom_kill 0",
    )
    write(tmp_path / "f", freezer__state="THAWED")
    mounts = mount(tmp_path / "m", 1) + mount(tmp_path / "f", 1, names="rw,freezer")
    seen = cgroup.snapshot(cgroup.resolve("4:memory:/\n6:freezer:/\n", mounts))
    assert seen is not None
    assert (seen.limit_hits, seen.under_oom, seen.frozen) == (4, True, False)
    (tmp_path / "f" / "freezer.state").write_text("FROZEN\n")
    assert cgroup.frozen(cgroup.resolve("4:memory:/\n6:freezer:/\n", mounts)) is True


@pytest.mark.root
def test_a_job_of_somebody_else_is_told_of_by_its_own_group_alone(
    memory_group: str, case: Case, tmp_path: Path
) -> None:
    program = tmp_path / "hog.py"
    program.write_text(HOG)
    child = subprocess.Popen(
        [sys.executable, str(program), memory_group], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline()
        watch = CgroupWatch(ours=False)
        watch.see([child.pid])
        (evidence,) = watch.look(case, "job", "after")
        assert (
            evidence.data["path"],
            evidence.data["limit_bytes"],
            evidence.data["oom_kill_rise"],
        ) == (memory_group, 48 * MIB, 0)
        assert watch.host_rise() is not None
    finally:
        child.kill()
        child.wait(10)
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
    (unseen,) = CgroupWatch(ours=False).look(case, "job", "after")
    assert unseen.outcome == "unavailable"
