"""The job never notices that it is looked at: `--deep` on ranks in every kind of wait, and
losses bit-equal with and without.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT, TOKEN, MakeCgroup, end, processes_with, python_path
from trainprobe.case import Case
from trainprobe.collect.deep import look_deep
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Evidence
from trainprobe.saved_case import read_case
from trainprobe.system import borrowed_thread

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.skipif(bool(borrowed_thread.unsupported()), reason="x86-64 only"),
]

# Rank 1 is held up at one place after the other, each until the file go-<place> is there.
JOB = """
import os, sys, time
import torch, torch.distributed as dist
from torch import nn

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(7)
model = nn.parallel.DistributedDataParallel(nn.Linear(32, 8))
optimizer = torch.optim.SGD(model.parameters(), 0.01)

def hold(place):
    open("at-" + place, "a").close()
    while not os.path.exists("go-" + place):
        time.sleep(0.02)

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 160
    def __getitem__(self, place):
        if place == 100 and rank == 1:
            hold("loader")
        return torch.full((32,), place / 100 + rank)

losses = []
for step, batch in enumerate(torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=1)):
    if step == 5:
        message = torch.zeros(3)
        open("at-recv", "a").close()
        if rank == 1:
            hold("recv")
            dist.send(message + 1, 0)
        else:
            dist.recv(message, 1)
    if step == 10:
        if rank == 1:
            hold("barrier")
        dist.barrier()
    if step == 15 and rank == 1:
        hold("ddp")
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item().hex())
    time.sleep(float(os.environ.get("STEP_S", "0")))
print("names", sorted(name for name in vars() if name in ("f", "FOLDER", "UNTIL", "said", "json")), flush=True)
print("losses", rank, " ".join(losses), flush=True)
dist.destroy_process_group()
"""
PLACES = ("recv", "barrier", "ddp", "loader")


@dataclass
class Job:
    """Two ranks without a launcher. `said` is what they printed, once they have ended."""

    folder: Path
    ranks: Sequence[subprocess.Popen[bytes]]
    said: str = ""

    @property
    def members(self) -> list[Member]:
        return [Member(rank, process.pid) for rank, process in enumerate(self.ranks)]

    def wait_for(self, name: str, within_s: float = 300.0) -> None:
        ends = time.monotonic() + within_s
        while not (self.folder / name).exists():
            assert time.monotonic() < ends, f"nobody came to {name}: {self.output()}"
            assert all(process.poll() is None for process in self.ranks), self.output()
            time.sleep(0.05)

    def output(self) -> str:
        return "".join((self.folder / f"out{rank}").read_text() for rank in range(2))

    def losses(self) -> list[str]:
        """Wait for the end, which must be a good one."""
        codes = [process.wait(timeout=300) for process in self.ranks]
        assert codes == [0, 0], self.output()
        assert "names []" in self.output()
        return sorted(line for line in self.output().splitlines() if line.startswith("losses"))


def start(folder: Path, token: str, cgroup: Path | None = None, **environment: str) -> Job:
    folder.mkdir(exist_ok=True)
    (folder / "job.py").write_text(JOB)
    port = str(20000 + int.from_bytes(os.urandom(2), "little") % 20000)
    join = "" if cgroup is None else f'echo $$ > "{cgroup}/cgroup.procs" || exit 99; '
    ranks = []
    for rank in range(2):
        env = {
            **os.environ,
            TOKEN: token,
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "OMP_NUM_THREADS": "1",
        }
        with (folder / f"out{rank}").open("wb") as out:
            command = ["/bin/sh", "-c", f'{join}exec "$@"', "sh", sys.executable, "job.py"]
            ranks.append(
                subprocess.Popen(
                    command,
                    cwd=folder,
                    env={**env, **environment},
                    stdout=out,
                    stderr=subprocess.STDOUT,
                )
            )
    return Job(folder, ranks)


def pass_by(folder: Path, *places: str) -> None:
    folder.mkdir(exist_ok=True)
    for place in places:
        (folder / f"go-{place}").touch()


@pytest.fixture
def ended(token: str) -> Iterator[None]:
    yield
    end(list(processes_with(token)))


def unharmed(job: Job) -> None:
    """Every process is there, nobody is stopped and nobody is traced."""
    for process in job.ranks:
        assert process.poll() is None, job.output()
        status = Path(f"/proc/{process.pid}/status").read_text()
        state, tracer = (
            next(line.split()[1] for line in status.splitlines() if line.startswith(name))
            for name in ("State:", "TracerPid:")
        )
        assert state in "SRD"
        assert tracer == "0"
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            assert (task / "stat").read_text().rpartition(")")[2].split()[0] not in "Tt"


def recorded(records: Sequence[Evidence], rank: int) -> Evidence:
    return next(
        one for one in records if one.kind == "flight_recorder" and one.data["rank"] == rank
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The losses when nobody looks and nobody waits."""
    folder = tmp_path_factory.mktemp("calm")
    pass_by(folder, *PLACES)
    return start(folder, "").losses()


@pytest.mark.usefixtures("ended")
def test_deep_works_in_every_wait_and_changes_no_loss(
    token: str, tmp_path: Path, undisturbed: list[str]
) -> None:
    job = start(tmp_path / "job", token)
    pending = {}
    with Case.create(str(tmp_path / "case"), "attach", []) as case:
        for place in PLACES:
            job.wait_for(f"at-{place}")
            time.sleep(0.3)  # for the other rank to come to its wait
            records = look_deep(case, "job", job.members)
            said = [(one.outcome, one.reason) for one in records if one.kind == "deep"]
            assert said == [("ok", ""), ("ok", "")], place
            unharmed(job)
            entries = recorded(records, 0).data["entries"]
            pending[place] = [entry["op"] for entry in entries if not entry["retired"]]
            assert any(entry["frames"] for entry in entries), place
            assert recorded(records, 1).data["groups"][0]["ranks"] == [0, 1]
            pass_by(job.folder, place)
        assert pending == {
            "recv": [],
            "barrier": ["barrier"],
            "ddp": ["all_reduce"],
            "loader": ["all_reduce"],
        }
    assert job.losses() == undisturbed


def attach(
    job: Job,
    folder: Path,
    *options: str,
    cgroup: Path | None = None,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    join = "" if cgroup is None else f'echo $$ > "{cgroup}/cgroup.procs" || exit 99; '
    command = [
        sys.executable,
        "-m",
        "trainprobe",
        "attach",
        str(job.ranks[0].pid),
        "--case",
        str(folder),
        *options,
    ]
    environment = {**os.environ, "NO_COLOR": "1", **python_path(), **(env or {})}
    return subprocess.run(
        ["/bin/sh", "-c", f'{join}exec "$@"', "sh", *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def attach_again_and_again(job: Job, folder: Path, times: int) -> int:
    """Return how many of the looks with --deep brought a dump."""
    dumps = 0
    for turn in range(times):
        done = attach(job, folder / f"case{turn}", *(["--deep"] if turn % 2 else []))
        assert done.returncode in (0, 1, 3), done.stdout + done.stderr
        unharmed(job)
        dumps += sum(
            one.kind == "flight_recorder" and one.outcome == "ok"
            for one in read_case(str(folder / f"case{turn}")).evidence
        )
    return dumps


@pytest.mark.parametrize("times", [2, pytest.param(50, marks=pytest.mark.soak)])
@pytest.mark.usefixtures("ended")
def test_attaches_to_a_running_job_change_no_loss(
    times: int, token: str, tmp_path: Path, undisturbed: list[str]
) -> None:
    pass_by(tmp_path / "job", *(place for place in PLACES if place != "loader"))
    job = start(tmp_path / "job", token, STEP_S="0.1")
    job.wait_for("at-recv")
    dumps = attach_again_and_again(
        job, tmp_path, times
    )  # it runs for some steps, then hangs: both are looked at
    assert dumps >= times // 2
    pass_by(job.folder, "loader")
    assert job.losses() == undisturbed


# each start of the tool costs more than it shows; that a look may be killed is also told by tests
# without torch
@pytest.mark.soak
@pytest.mark.parametrize("times", [4, 40])
@pytest.mark.usefixtures("ended")
def test_the_tool_may_be_killed_at_any_moment(
    times: int, token: str, tmp_path: Path, undisturbed: list[str]
) -> None:
    pass_by(tmp_path / "job", "recv", "barrier", "loader")
    job = start(tmp_path / "job", token)
    job.wait_for("at-ddp")
    for turn in range(times):
        command = [
            sys.executable,
            "-m",
            "trainprobe",
            "attach",
            str(job.ranks[1].pid),
            "--deep",
            "--case",
            str(tmp_path / f"case{turn}"),
        ]
        tool = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **python_path()},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(0.3 + 2.2 * turn / times)
        tool.send_signal(signal.SIGKILL)
        tool.wait()
        time.sleep(0.1)
        unharmed(job)
    pass_by(job.folder, "ddp")
    assert job.losses() == undisturbed


@pytest.mark.root
@pytest.mark.parametrize("times", [1, pytest.param(50, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "inside",
    [pytest.param(False, marks=pytest.mark.soak), True],
    ids=["from outside", "in the same container"],
)
@pytest.mark.usefixtures("ended")
def test_a_job_just_below_its_memory_limit_survives(
    inside: bool, times: int, token: str, tmp_path: Path, memory_cgroup: MakeCgroup
) -> None:
    roomy = 8 * 2**30
    group = memory_cgroup(roomy)
    limit = group / (
        "memory.limit_in_bytes" if (group / "memory.limit_in_bytes").exists() else "memory.max"
    )
    used = group / (
        "memory.usage_in_bytes" if (group / "memory.usage_in_bytes").exists() else "memory.current"
    )
    pass_by(tmp_path / "job", "recv", "barrier", "loader")
    job = start(tmp_path / "job", token, cgroup=group)
    job.wait_for("at-ddp")
    (
        (group / "memory.force_empty").write_text("0")
        if (group / "memory.force_empty").exists()
        else None
    )
    limit.write_text(str(int(used.read_text()) + 200 * 2**20))
    for turn in range(times):
        done = attach(job, tmp_path / f"case{turn}", "--deep", cgroup=group if inside else None)
        unharmed(job)
        assert done.returncode in ((0, 1, 3) if not inside else (0, 1, 3, -9, 137)), (
            done.stdout + done.stderr
        )
    pass_by(job.folder, "ddp")
    job.losses()
