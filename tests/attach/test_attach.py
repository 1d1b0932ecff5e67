"""`trainprobe attach` on a live, hung, unprepared job: whichever process is named, and what it
costs the job.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import end, python_path

pytestmark = pytest.mark.torch

CULPRIT = 1
SCRIPT = """
import os, time
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 1 << 30
    def __getitem__(self, place):
        return torch.zeros(4)

def wait_for_the_shard():
    while not os.path.exists("shard.ready"):
        time.sleep(0.05)

def main():
    dist.init_process_group("gloo")
    for step, batch in enumerate(DataLoader(Numbers(), num_workers=1, batch_size=2)):
        if step == 3 and dist.get_rank() == 1:
            open("hangs", "w").close()
            wait_for_the_shard()
        dist.all_reduce(batch)
        if step == 200:
            break
    dist.destroy_process_group()

main()
"""


@dataclass(frozen=True)
class HungJob:
    """A job of two ranks. `pids` are its launcher, then its ranks in order, then their loader
    workers in order.
    """

    process: subprocess.Popen[bytes]
    folder: Path
    pids: tuple[int, ...]

    def states(self) -> list[str]:
        return [
            Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
            for pid in self.pids
        ]

    def tracers(self) -> set[str]:
        lines = [
            line
            for pid in self.pids
            for line in Path("/proc", str(pid), "status").read_text().splitlines()
        ]
        return {line.split()[1] for line in lines if line.startswith("TracerPid:")}


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path("/proc", str(pid), "task").iterdir():
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            found += [int(word) for word in (task / "children").read_text().split()]
    return sorted(found)


def rank_of(pid: int) -> int:
    words = Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
    return next(int(word[5:]) for word in words if word.startswith(b"RANK="))


HANG_S = 5.0  # a wait that is younger is no hang yet


def wait_until_at_rest(pid: int) -> None:
    """Return once the main thread has slept without a break for longer than a hang takes to
    show: on a busy machine a rank is long on its way.
    """
    seen, since, ends = "", time.monotonic(), time.monotonic() + 120
    while time.monotonic() - since < HANG_S + 1.0:
        assert time.monotonic() < ends
        status = Path("/proc", str(pid), "status").read_text()
        now = "".join(
            line
            for line in status.splitlines()
            if line.startswith(("State", "voluntary", "nonvoluntary"))
        )
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.05)


@pytest.fixture(scope="module")
def job() -> Iterator[HungJob]:
    with tempfile.TemporaryDirectory(prefix="job-") as name:
        folder = Path(name)
        (folder / "train.py").write_text(SCRIPT)
        argv = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            "2",
            "train.py",
        ]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                argv, cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True
            )
        pids: list[int] = [process.pid]
        try:
            ends = time.monotonic() + 300
            while not (folder / "hangs").exists():
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < ends, (folder / "log").read_text()
                time.sleep(0.1)
            ranks = sorted(children(process.pid), key=rank_of)
            wait_until_at_rest(ranks[1 - CULPRIT])
            pids += [*ranks, *(worker for rank in ranks for worker in children(rank))]
            assert len(pids) == 5
            yield HungJob(process, folder, tuple(pids))
        finally:
            end(pids)
            process.wait()


@dataclass(frozen=True)
class Attached:
    code: int
    text: str
    said: str
    report: dict[str, Any]
    case: Path


def attach_in(folder: Path) -> Any:
    def run(*words: str, env: dict[str, str] | None = None, timeout_s: float = 300.0) -> Attached:
        case, report = folder / "case", folder / "report.json"
        argv = [
            sys.executable,
            "-m",
            "trainprobe",
            "attach",
            *words,
            "--case",
            str(case),
            "--json",
            str(report),
        ]
        environment = {**os.environ, "NO_COLOR": "1", **python_path(), **(env or {})}
        ran = subprocess.run(
            argv,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return Attached(
            ran.returncode,
            ran.stdout,
            ran.stderr,
            json.loads(report.read_text()) if report.exists() else {},
            case,
        )

    return run


@pytest.fixture
def attach(tmp_path: Path) -> Any:
    return attach_in(tmp_path)


@pytest.fixture(scope="module")
def by_launcher(job: HungJob, tmp_path_factory: pytest.TempPathFactory) -> Attached:
    """One look by the launcher's pid, for all tests that only read what it brought."""
    ran: Attached = attach_in(tmp_path_factory.mktemp("by-launcher"))(str(job.pids[0]))
    return ran


def evidence(case: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (case / "evidence.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "place",
    [0, pytest.param(1, marks=pytest.mark.soak), 4],
    ids=["launcher", "rank-0", "worker-of-1"],
)
def test_any_process_names_the_culprit(
    job: HungJob, attach: Any, by_launcher: Attached, place: int
) -> None:
    ran = attach(str(job.pids[place])) if place else by_launcher
    assert ran.report["verdict"] == "hung", ran.text
    assert ran.code == 1
    assert ran.report["command"] == "attach"
    assert ran.report["suspects"][0]["ranks"] == [CULPRIT]
    assert ran.report["causes"][0]["ranks"] == [CULPRIT]
    assert "wait_for_the_shard" in ran.text
    assert {
        fact["subject"]["pid"]
        for fact in evidence(ran.case)
        if fact["subject"]["kind"] == "rank" and fact["kind"] == "process"
    } == set(job.pids[1:3])


def test_the_saved_case_gives_the_identical_report(by_launcher: Attached, tmp_path: Path) -> None:
    ran = by_launcher
    again = tmp_path / "again.json"
    argv = [sys.executable, "-m", "trainprobe", "explain", str(ran.case), "--json", str(again)]
    explained = subprocess.run(
        argv,
        cwd=tmp_path,
        env={**os.environ, "NO_COLOR": "1", **python_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert explained.returncode == ran.code
    assert explained.stdout == ran.text
    assert json.loads(again.read_text()) == ran.report


def test_the_case_says_who_everybody_is(job: HungJob, by_launcher: Attached) -> None:
    records = evidence(by_launcher.case)
    assert records[0]["kind"] == "job"
    assert [rank["rank"] for rank in records[0]["data"]["ranks"]] == [0, 1]
    looks = [
        (record["subject"]["pid"], record["data"]["look"])
        for record in records
        if record["kind"] == "process"
    ]
    assert {pid for pid, _ in looks} == set(job.pids)
    assert {look for _, look in looks} >= {1, 2}
    kinds = {record["kind"] for record in records}
    assert {
        "stacks.python",
        "locks",
        "sockets",
        "files",
        "mounts",
        "gpus",
        "kernel_log",
        "cgroup",
        "source",
    } <= kinds
    assert all(record["reason"] for record in records if record["outcome"] != "ok")
    roles = {
        record["subject"]["pid"]: (record["subject"]["role"], record["subject"]["rank"])
        for record in records
        if record["kind"] == "process"
    }
    assert [roles[pid] for pid in job.pids] == [
        ("launcher", None),
        ("rank", 0),
        ("rank", 1),
        ("loader-worker", 0),
        ("loader-worker", 1),
    ]


def test_watch_tells_each_round_and_goes_on_counting(job: HungJob, attach: Any) -> None:
    ran = attach(str(job.pids[0]), "--watch", "0.3", "--times", "3")
    assert ran.report["suspects"][0]["ranks"] == [CULPRIT]
    told = [line for line in ran.said.splitlines() if "stand" in line]
    assert len(told) == 3, ran.said
    numbers = {
        record["data"]["look"] for record in evidence(ran.case) if record["kind"] == "stacks.python"
    }
    assert numbers == set(range(1, max(numbers) + 1))
    assert len(numbers) >= 4


def test_ctrl_c_ends_a_watch_with_the_report(job: HungJob, tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-m",
        "trainprobe",
        "attach",
        str(job.pids[0]),
        "--watch",
        "0.5",
        "--case",
        str(tmp_path / "case"),
    ]
    ran = subprocess.Popen(
        argv,
        env={**os.environ, **python_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert ran.stderr is not None
    for line in ran.stderr:
        if "look 3" in line:
            break
    ran.send_signal(signal.SIGINT)
    out, _ = ran.communicate(timeout=300)
    assert ran.returncode == 1
    assert "HUNG" in out


def test_no_time_is_said_and_not_healthy(job: HungJob, attach: Any) -> None:
    ran = attach(str(job.pids[0]), "--timeout", "0.001")
    assert ran.code in (1, 3)
    late = [record for record in evidence(ran.case) if record["outcome"] == "timed_out"]
    assert late
    assert all(record["reason"] for record in late)


@pytest.mark.parametrize(
    "turns", [range(0, 12, 4), pytest.param(range(12), marks=pytest.mark.soak)], ids=["some", "all"]
)
def test_killing_the_tool_in_mid_look_leaves_the_job_running(
    job: HungJob, tmp_path: Path, turns: range
) -> None:
    for turn in turns:
        argv = [
            sys.executable,
            "-m",
            "trainprobe",
            "attach",
            str(job.pids[0]),
            "--case",
            str(tmp_path / f"case-{turn}"),
        ]
        ran = subprocess.Popen(
            argv,
            env={**os.environ, **python_path()},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        ends = time.monotonic() + 10.0
        try:
            while ran.poll() is None and time.monotonic() < ends and not children(ran.pid):
                time.sleep(0.001)  # the first child is a py-spy that is about to stop a rank
            time.sleep(0.0007 * turn)
        finally:
            ran.kill()
            ran.wait()
        time.sleep(0.05)
        assert not set(job.states()) & set("TtZX"), job.states()
        assert job.tracers() == {"0"}


def test_without_a_pid_several_jobs_are_listed(job: HungJob, attach: Any) -> None:
    """Other people's jobs may run here too: ours is found or listed, and nothing is asked of a
    non-terminal.
    """
    ran = attach()
    if ran.code == 2:
        assert f"  {job.pids[0]}  torchrun, ranks 0-1, " in ran.said
        assert "trainprobe attach PID" in ran.said
    else:
        assert ran.report["suspects"][0]["ranks"] == [CULPRIT]


@pytest.mark.parametrize(
    "pid",
    ["2", *(pytest.param(pid, marks=pytest.mark.soak) for pid in ("4194301", "0", "x")), "-3"],
)
def test_a_pid_that_is_no_job_is_one_sentence(attach: Any, pid: str) -> None:
    ran = attach("--", pid) if pid.startswith("-") else attach(pid)
    assert ran.code == 2, ran.said
    assert ran.said.startswith("trainprobe: ")
    assert len(ran.said.splitlines()) == 1
    assert not ran.case.exists()


def test_the_job_goes_on_when_its_shard_comes(job: HungJob) -> None:
    """Last in this file: after all that, the job ends by itself and well."""
    (job.folder / "shard.ready").touch()
    assert job.process.wait(timeout=300) == 0, (job.folder / "log").read_text()
