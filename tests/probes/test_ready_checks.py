"""The check programs of readiness on this machine, healthy and with real faults: mounts, limits,
names, interfaces, processes that hang.
"""

from __future__ import annotations

import os
import platform
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.probes.conftest import ProbeRun, RunProbe

PROGRAMS = ("host", "launch_plan", "diagnosable", "machine", "storage", "network", "devices")
DEAD_MOUNT = ROOT / "tests" / "programs" / "dead_mount.py"
WITHOUT_PTRACE = ROOT / "tests" / "programs" / "without_ptrace.py"
# `exec` puts what follows in the place of the shell that a fixture starts; the program's own words
# follow as "$@".
OWN_MOUNTS = 'exec unshare --mount --propagation private /bin/sh -c \'{}; exec "$@"\' sh "$@"'
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts are made by root only")


def check(done: ProbeRun, name: str) -> Mapping[str, Any]:
    found = [one for one in done.events if one.get("check") == name]
    assert found, f"{name} was not told: {done.output}"
    return found[-1]


def states(done: ProbeRun) -> dict[str, str]:
    return {
        one["check"]: one["status"]
        for one in done.events
        if "check" in one and one["event"] in ("note", "fail")
    }


def values(done: ProbeRun) -> dict[str, Any]:
    return {one["name"]: one["value"] for one in done.of("value")}


def test_nothing_fails_on_this_machine_and_all_of_it_takes_three_seconds_of_cpu(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told: dict[str, str] = {}
    for program in PROGRAMS:
        done = run_probe(
            program, env={"TRAINPROBE_SLOT": "step", "TRAINPROBE_PATHS": str(tmp_path)}
        )
        assert (done.answer, done.exit_code) == ("yes", 0), done.output
        assert not done.of("dropped") or program == "storage"
        assert not [one for one in done.of("phase.end") if "strange" in one], (
            "a check says an id that is not its own"
        )
        told.update(states(done))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert [name for name, state in told.items() if state == "fail"] == []
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime <= 3.0
    assert len(told) > 60


def test_every_check_is_told_under_its_own_name(run_probe: RunProbe) -> None:
    """So that one that hangs is named by the phase that is open."""
    done = run_probe("machine")
    begun = [one["name"] for one in done.of("phase.begin")]
    assert begun == [one["name"] for one in done.of("phase.end")]
    assert not [one for one in done.of("phase.end") if "strange" in one]
    assert "host.procstate" in begun


def test_what_does_not_belong_to_the_slot_or_the_budget_is_said_to_be_left_out(
    run_probe: RunProbe,
) -> None:
    done = run_probe("storage", env={"TRAINPROBE_SLOT": "prolog", "PATH": "", "HOME": ""})
    dropped = {one["check"]: one["says"] for one in done.of("dropped")}
    assert "fs.hang" in states(done)
    assert "only with --slot step" in dropped["shm.alloc"]
    assert not set(dropped) & set(states(done))
    assert (
        "only with --standard"
        in {one["check"]: one["says"] for one in run_probe("storage").of("dropped")}["fs.ckpt"]
    )


def test_a_site_sets_thresholds_and_nonsense_sets_none(run_probe: RunProbe) -> None:
    set_by_site = check(
        run_probe(
            "machine", env={"TRAINPROBE_THRESHOLDS": '{"host.uptime": 1e12, "host.swap": "5"}'}
        ),
        "host.uptime",
    )
    assert set_by_site["status"] == "warn"
    assert "site" in set_by_site["source"]
    for nonsense in ("nonsense", '["host.uptime"]', '{"host.uptime": "1e12"}'):
        done = run_probe("machine", env={"TRAINPROBE_THRESHOLDS": nonsense})
        assert done.answer == "yes"
        assert "source" not in check(done, "host.uptime")


def test_limits_of_a_planned_world(run_probe: RunProbe) -> None:
    many = {"TRAINPROBE_SLOT": "step", "TRAINPROBE_WORLD": "16", "TRAINPROBE_NODES": "a,b"}
    done = run_probe("host", env=many, shell="ulimit -n 256; ulimit -l 64")
    assert (check(done, "lim.nofile")["status"], check(done, "lim.memlock")["status"]) == (
        "fail",
        "warn",
    )
    assert check(run_probe("host", shell="ulimit -n 256"), "lim.nofile")["status"] == "warn"
    told = values(run_probe("machine", shell="ulimit -n 256; ulimit -l 64"))
    assert (told["limit.nofile"], told["limit.memlock_bytes"]) == ("256", "65536")


@pytest.fixture
def quota() -> Iterator[Path]:
    """A cgroup of version 1 with a fifth of a CPU."""
    folder = Path(f"/sys/fs/cgroup/cpu/trainprobe-test-{os.getpid()}")
    try:
        folder.mkdir()
        (folder / "cpu.cfs_quota_us").write_text("20000")
    except OSError as error:
        pytest.skip(f"no cgroup with a CPU quota can be made here: {error}")
    yield folder
    for _ in range(100):
        try:
            folder.rmdir()
        except OSError:  # its last process has not quite ended
            time.sleep(0.05)
        else:
            break


def test_a_quota_that_starves_the_ranks(quota: Path, run_probe: RunProbe) -> None:
    join = f"echo $$ > {quota}/cgroup.procs"
    done = run_probe("host", shell=join, env={"TRAINPROBE_SLOT": "step"})
    assert check(done, "lim.cgcpu")["status"] == "fail"
    assert "0.2 CPUs" in check(done, "lim.cgcpu")["says"]
    assert values(run_probe("machine", shell=join))["cpu_quota"] == "0.2"


@needs_root
def test_a_tiny_shared_memory(run_probe: RunProbe) -> None:
    shell = OWN_MOUNTS.format("mount -t tmpfs -o size=1m tmpfs /dev/shm")
    done = run_probe("storage", shell=shell, env={"TRAINPROBE_NPROC": "2"})
    assert check(done, "shm.alloc")["status"] == "fail"
    assert "No space left" in check(done, "shm.alloc")["says"]
    assert values(done)["shm.size_bytes"] == str(2**20)
    assert check(run_probe("host", shell=shell), "shm.size")["status"] == "fail"


@contextmanager
def dead_mount(folder: Path) -> Iterator[None]:
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, str(DEAD_MOUNT), str(folder), "asleep"], stdout=subprocess.PIPE
    ) as server:
        try:
            assert server.stdout is not None
            if server.stdout.readline() != b"ready\n":
                pytest.skip("a file system of /dev/fuse cannot be mounted here")
            yield
        finally:
            server.terminate()


@needs_root
def test_a_mount_that_does_not_answer_is_named_and_takes_nothing_else_with_it(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    with dead_mount(folder):
        began = time.monotonic()
        env = {
            "TRAINPROBE_PATHS": f"{folder}:{tmp_path}",
            "TRAINPROBE_THRESHOLDS": '{"fs.hang": 0.7}',
            "TRAINPROBE_BUDGET": "standard",
        }
        done = run_probe("storage", env=env)
        took_s = time.monotonic() - began
        machine = run_probe("machine")
        unasked = run_probe("storage")
        health = run_probe(
            "storage",
            env={"TRAINPROBE_SLOT": "healthcheck", "TRAINPROBE_THRESHOLDS": '{"fs.hang": 0.5}'},
        )
    assert (
        check(unasked, "fs.hang")["status"] == "ok"
    )  # nobody needs it: no process is risked for it
    assert check(health, "fs.hang")["status"] == "warn"
    assert check(done, "fs.hang")["status"] == "fail"
    assert str(folder) in check(done, "fs.hang")["says"]
    assert str(tmp_path) + " (" not in check(done, "fs.hang")["says"]
    told = states(done)
    assert (told["fs.mounts"], told["fs.ckpt"], told["shm.alloc"]) == ("ok", "ok", "ok"), (
        done.output
    )
    assert values(done)[f"mount.{folder}"] == "gives no answer"
    assert took_s < 15  # 0.7 s of patience, and two rates of at most some seconds on a busy machine
    assert check(machine, "host.procstate")["status"] == "warn", machine.output
    assert "uninterruptibly" in check(machine, "host.procstate")["says"]


@needs_root
def test_a_server_that_knows_no_root_is_no_missing_mount_and_users_still_must_get_in(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    os.chown(closed, 65534, 65534)
    as_nobody = (  # root without the rights of root, as a server sees it
        'exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    )
    states_by_slot = {}
    for slot in ("prolog", "step"):
        done = run_probe(
            "storage",
            shell=as_nobody,
            env={"TRAINPROBE_SLOT": slot, "TRAINPROBE_PATHS": str(closed)},
        )
        states_by_slot[slot] = check(done, "fs.mounts")["status"]
    assert states_by_slot == {"prolog": "ok", "step": "fail"}


def test_a_command_that_is_printed_runs_no_file_name(run_probe: RunProbe) -> None:
    path = Path("/dev/shm/vader_segment.x;touch${IFS}owned")
    try:
        path.write_bytes(b"x" * 4096)
        os.utime(path, (1, 1))
        done = run_probe(
            "storage",
            env={"TRAINPROBE_SLOT": "epilog", "TRAINPROBE_THRESHOLDS": '{"shm.stale": 0}'},
        )
        assert f"'{path}'" in check(done, "shm.stale")["fix"]
    finally:
        path.unlink()


@pytest.mark.parametrize(
    ("planned", "now", "status"),
    [
        ("defaults", "rw", "ok"),
        ("defaults,errors=remount-ro", "ro", "fail"),
        ("ro", "ro", "ok"),
        ("", "ro", "ok"),  # a node without a disk
    ],
)
def test_a_root_that_became_read_only(
    planned: str, now: str, status: str, run_probe: RunProbe, tmp_path: Path
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "fstab").write_text(f"/dev/sda1 / ext4 {planned} 0 1\n" if planned else "")
    own = tmp_path / "proc" / "self"
    own.mkdir(parents=True)
    (own / "mountinfo").write_text(f"1 0 8:1 / / rw,relatime - ext4 /dev/sda1 {now}\n")
    done = run_probe("storage", "--root", str(tmp_path), env={"TRAINPROBE_SLOT": "prolog"})
    row = check(done, "fs.system")
    assert (row["status"], "/ (ext4) is read-only" in row["says"]) == (status, status == "fail")


@needs_root
@pytest.mark.parametrize(
    ("mounts", "severity", "says"),
    [
        ("mount -t tmpfs -o ro tmpfs /tmp", None, "/tmp is read-only"),
        (
            "mount -t tmpfs -o size=64k tmpfs /tmp; head -c 70000 /dev/zero > /tmp/x 2>/dev/null",
            None,
            "/tmp is full (0 KiB free)",
        ),
        ("mount -t tmpfs -o nr_inodes=1 tmpfs /tmp", None, "/tmp has no inodes left"),
        ("mount -t tmpfs -o ro tmpfs /var/log", "degraded", "/var/log is read-only"),
    ],
)
def test_a_system_disk_that_is_full_or_read_only(
    mounts: str, severity: str | None, says: str, run_probe: RunProbe
) -> None:
    if mounts.split(";", maxsplit=1)[0].endswith(" /tmp") and sys.prefix.startswith("/tmp/"):
        pytest.skip("this Python itself lies in /tmp, which is hidden by the disk")
    slot = {"TRAINPROBE_SLOT": "prolog"}
    done = run_probe("storage", shell=OWN_MOUNTS.format(mounts), env=slot)
    assert (done.exit_code, f"FAIL: System disk: {says}" in done.output) == (10, True)
    if severity:  # elsewhere the new /tmp hides the events
        assert check(done, "fs.system")["severity"] == severity


@needs_root
def test_folders_that_are_missing_full_or_read_only(run_probe: RunProbe, tmp_path: Path) -> None:
    full, fixed, gone = tmp_path / "full", tmp_path / "fixed", tmp_path / "gone"
    full.mkdir()
    fixed.mkdir()
    mounts = (
        f"mount -t tmpfs -o size=64k tmpfs {full}; head -c 70000 /dev/zero > {full}/x 2>/dev/null;"
        f" mount -t tmpfs -o ro tmpfs {fixed}"
    )
    done = run_probe(
        "storage",
        shell=OWN_MOUNTS.format(mounts),
        env={"TRAINPROBE_PATHS": f"{full}:{fixed}:{gone}"},
    )
    says = check(done, "fs.mounts")["says"]
    assert check(done, "fs.mounts")["status"] == "fail"
    assert f"{gone}: No such file" in says
    assert f"{full} cannot be written: ENOSPC" in says
    assert str(fixed) not in says  # read-only as it was mounted
    assert check(done, "fs.inodes")["status"] == "fail"
    told = values(done)
    assert told[f"mount.{full}"] == f"tmpfs at {full}"
    assert told[f"mount.{gone}"] == "missing"
    assert told[f"writable.{fixed}"] == "no, EROFS"


@needs_root
@pytest.mark.parametrize(("address", "state"), [("127.0.1.1", "fail"), ("192.0.2.7", "ok")])
def test_the_own_name_on_the_loopback(
    address: str, state: str, run_probe: RunProbe, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts"
    own = socket.gethostname()
    hosts.write_text(f"127.0.0.1 localhost\n{address} {own}\n192.0.2.9 other\n")
    shell = OWN_MOUNTS.format(f"mount --bind {hosts} /etc/hosts")
    done = run_probe("network", shell=shell, env={"TRAINPROBE_NODES": f"{own},other"})
    assert check(done, "host.dns")["status"] == state, done.output
    assert values(done)["host.own_name_loops"] == ("yes" if state == "fail" else "no")
    if state == "fail":
        assert "127.0.1.1" in check(done, "host.dns")["says"]
        alone = run_probe("network", shell=shell)
        assert (
            check(alone, "host.dns")["status"] == "ok"
        )  # on one node gloo may well take the loopback
        return
    # A name that does not resolve may be that node's fault: nobody is left out for not knowing it.
    lost = run_probe(
        "network", shell=shell, env={"TRAINPROBE_NODES": f"{own},other,no-such-host.invalid"}
    )
    assert check(lost, "host.dns")["status"] == "warn"
    assert values(lost)["net.resolves"] == "yes"
    assert (
        values(
            run_probe(
                "network", shell=shell, env={"TRAINPROBE_NODES": f"{own},no-such-host.invalid"}
            )
        )["net.resolves"]
        == "none of the other nodes"
    )


def test_variables_that_name_no_usable_interface(run_probe: RunProbe) -> None:
    several = {"TRAINPROBE_WORLD": "2", "TRAINPROBE_NPROC": "1"}
    done = run_probe(
        "network", env={**several, "NCCL_SOCKET_IFNAME": "ib7", "GLOO_SOCKET_IFNAME": "lo"}
    )
    assert (check(done, "net.ifname")["status"], check(done, "net.if")["status"]) == (
        "fail",
        "fail",
    )
    assert "NCCL_SOCKET_IFNAME=ib7 fits no interface" in check(done, "net.ifname")["says"]
    assert "GLOO_SOCKET_IFNAME=lo is the loopback" in check(done, "net.ifname")["says"]
    assert (
        check(
            run_probe("network", env={"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "=lo"}),
            "net.ifname",
        )["status"]
        == "ok"
    )


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"RANK": "0", "WORLD_SIZE": "2"}, "LOCAL_RANK is not set"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 is not below WORLD_SIZE=2"),
        ({"RANK": "one", "WORLD_SIZE": "2"}, "RANK='one' is no number"),
        (
            {"RANK": "0", "WORLD_SIZE": "2", "SLURM_NTASKS": "2", "SLURM_PROCID": "1"},
            "another task has this rank too",
        ),
    ],
)
def test_rank_variables_that_do_not_fit(
    env: dict[str, str], said: str, run_probe: RunProbe
) -> None:
    full = (
        {"LOCAL_RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
        if "LOCAL_RANK" not in said
        else {}
    )
    done = run_probe("launch_plan", env={**full, **env})
    assert check(done, "plan.ranks")["status"] == "fail"
    assert said in check(done, "plan.ranks")["says"]


@pytest.mark.parametrize(
    ("visible", "asked", "state"),
    [
        ("0,1", {}, "ok"),
        ("0", {}, "fail"),
        ("GPU-8932f937-d72c,MIG-GPU-1/2/0", {}, "ok"),
        ("0,-1,1", {"SLURM_GPUS_ON_NODE": "2"}, "fail"),
        ("NoDevFiles", {"TRAINPROBE_GPUS": "2"}, "fail"),
        ("NoDevFiles", {}, "skip"),
        ("", {"SLURM_GPUS_ON_NODE": "0"}, "skip"),  # a job without GPUs on a host that has some
    ],
)
def test_gpus_that_are_given_and_asked_for(
    visible: str, asked: dict[str, str], state: str, run_probe: RunProbe, tmp_path: Path
) -> None:
    for number in range(4):
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / "dev" / f"nvidia{number}").touch()
    done = run_probe(
        "launch_plan",
        "--root",
        str(tmp_path),
        env={"CUDA_VISIBLE_DEVICES": visible, "TRAINPROBE_NPROC": "2", **asked},
    )
    assert check(done, "plan.gpus")["status"] == state


def test_variables_of_the_libraries(run_probe: RunProbe, tmp_path: Path) -> None:
    etc = tmp_path / "root" / "etc"
    etc.mkdir(parents=True)
    (etc / "nccl.conf").write_text(
        "# of an old incident\nNCCL_P2P_DISABLE=1\nNCCL_SECRET_TOKEN=abc\n"
    )
    env = {
        "NCCL_SOCKET_IFNAM": "eth0",
        "NCCL_IB_HCA": "mlx5",
        "NCCL_ASYNC_ERROR_HANDLING": "1",
        "NCCL_API_KEY": "hidden",
        "MASTER_ADDR": "no-such-host.invalid",
        "TRAINPROBE_NODES": "a,b",
        "WANDB_API_KEY": "hidden",
    }
    done = run_probe("launch_plan", "--root", str(tmp_path / "root"), env=env)
    assert "is NCCL_SOCKET_IFNAME meant?" in check(done, "plan.names")["says"]
    assert "NCCL_IB_HCA" not in check(done, "plan.names")["says"]
    assert check(done, "plan.rename")["fix"] == "export TORCH_NCCL_ASYNC_ERROR_HANDLING=…"
    assert "/etc/nccl.conf" in check(done, "plan.debugenv")["says"]
    assert check(done, "plan.master")["status"] == "fail"
    told = values(done)
    assert told["nccl.conf"] == "NCCL_P2P_DISABLE=1"
    assert told["env.NCCL_IB_HCA"] == "mlx5"
    assert told["version.python"] == platform.python_version()
    assert "hidden" not in str(done.events)
    assert "abc" not in str(done.events)


def test_proof_that_a_job_could_be_diagnosed(run_probe: RunProbe, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import datetime\ndist.init_process_group('gloo', timeout=datetime.timedelta(minutes=30))\n"
    )
    env = {
        "TORCH_FR_BUFFER_SIZE": "0",
        "TORCH_FR_DUMP_TEMP_FILE": "/proc/nowhere/rank_",
        "TRAINPROBE_SCRIPT": str(script),
        "SLURM_JOB_END_TIME": str(int(time.time()) + 900),
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "600",
    }
    done = run_probe("diagnosable", env=env)
    told = states(done)
    assert {
        name: told[name] for name in ("diag.recorder", "diag.dump", "diag.errfile", "diag.timeouts")
    } == dict.fromkeys(("diag.recorder", "diag.dump", "diag.errfile", "diag.timeouts"), "warn")
    assert "1800 s" in check(done, "diag.timeouts")["says"]
    assert done.answer == "yes"  # warnings forbid nothing
    script.write_text("@record\ndef main(): ...\n")
    good = run_probe(
        "diagnosable",
        env={
            "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
            "TRAINPROBE_SCRIPT": str(script),
            "XDG_CACHE_HOME": str(tmp_path),
        },
    )
    assert {
        states(good)[name]
        for name in (
            "diag.recorder",
            "diag.dump",
            "diag.errfile",
            "diag.timeouts",
            "diag.faulthandler",
        )
    } == {"ok"}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter is written for x86-64")
def test_stacks_that_may_not_be_read(run_probe: RunProbe) -> None:
    done = run_probe("diagnosable", shell=f'exec {sys.executable} {WITHOUT_PTRACE} "$@"')
    assert check(done, "diag.ptrace")["status"] == "warn", done.output
    assert "by nobody" in check(done, "diag.ptrace")["says"]
    assert check(done, "diag.ptrace")["value"]["seccomp"] is True
