"""Jobs of real processes, without torch: what /proc shows of them on this kernel and this
Python.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attach.started import Started, started, until
from tests.conftest import TOKEN
from trainprobe.targets.jobs import LiveJob, find_jobs, job_of
from trainprobe.targets.process_table import snapshot

SAYS = """
    import ctypes, os, socket, sys, time

    def here(name):
        with open(f"pid.{name}.tmp", "w") as file:
            file.write(str(os.getpid()))
        os.rename(f"pid.{name}.tmp", f"pid.{name}")

    def name_thread(name):
        ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)

    def clear_environ():
        words = open("/proc/self/stat").read().rpartition(")")[2].split()
        start, end = int(words[47]), int(words[48])  # env_start and env_end of proc(5)
        ctypes.memset(start, 0, end - start)
"""
SPAWNS = """
    import multiprocessing, sys
    from says import *

    def rank(number, world, port):
        os.environ.update(RANK=str(number), WORLD_SIZE=str(world))
        if number == 0:
            server = socket.create_server(("127.0.0.1", 0))
            with open("port", "w") as file:
                file.write(str(server.getsockname()[1]))
            os.rename("port", "store")
            talk = [server.accept() for _ in range(world - 1)]
        else:
            while not os.path.exists("store"):
                time.sleep(0.02)
            talk = socket.create_connection(("127.0.0.1", int(open("store").read())))
        here(f"rank{number}")
        time.sleep(120)

    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[1])
        ranks = [context.Process(target=rank, args=(number, 3, 0)) for number in range(3)]
        for each in ranks:
            each.start()
        here("launcher")
        for each in ranks:
            each.join()
"""
WORKS = """
    import subprocess
    from says import *

    here(f"rank{os.environ.get('RANK', sys.argv[-1])}")
    if os.fork() == 0:
        name_thread("pt_data_worker")
        here(f"worker{os.environ.get('RANK', sys.argv[-1])}")
    time.sleep(120)
"""
LAUNCHES = """
    import subprocess
    from says import *

    here("launcher")
    clear = "clear" in sys.argv
    for attempt in (0, 1):
        ranks = []
        for number in range(2):
            env = dict(os.environ, RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500",
                       TORCHELASTIC_RUN_ID="r1", TORCHELASTIC_RESTART_COUNT=str(attempt), ATTEMPT=str(attempt))
            command = [sys.executable, "train.py"]
            ranks.append(subprocess.Popen(command if clear else ["bash", "-c", " ".join(command) + "; true"], env=env, start_new_session=True))
        if attempt == 0 and not clear:
            while not os.path.exists("pid.first.0") or not os.path.exists("pid.first.1"):
                time.sleep(0.02)
            ranks[0].kill()
        elif clear:
            break
    time.sleep(120)
"""


@pytest.fixture
def jobs(job_folder: Path, token: str) -> Iterator[Started]:
    with started(job_folder, token) as made:
        made.write("says.py", SAYS)
        yield made


def ranks(job: LiveJob) -> dict[int, tuple[int | None, str]]:
    return {one.pid: (one.rank, one.rank_source) for one in job.ranks}


def roles(job: LiveJob) -> dict[int, tuple[str, int | None]]:
    return {one.pid: (one.role, one.rank) for one in job.others}


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_ranks_of_multiprocessing_that_set_their_number_inside_python(
    jobs: Started, method: str
) -> None:
    jobs.write("train.py", SPAWNS)
    launcher = jobs.start("train.py", method)
    pids = [jobs.pid_of(f"rank{number}") for number in range(3)]

    for pid in (launcher, pids[1]):
        job = job_of(pid)
        assert (job.launcher.kind, job.launcher.pid, job.world_size) == ("spawn", launcher, 3)
        assert ranks(job) == {pid: (number, "start-order") for number, pid in enumerate(pids)}
        assert set(roles(job).values()) <= {("launcher", None), ("child", None)}
        assert job.script == str(jobs.folder / "train.py")
    if method != "forkserver":  # whose server waits for the ranks at once
        os.kill(pids[1], 9)
        assert until(
            lambda: job_of(launcher).ranks[1].cmdline.startswith("[")
        )  # nobody has waited for it: a zombie keeps its place
        assert ranks(job_of(launcher)) == {
            pid: (number, "start-order") for number, pid in enumerate(pids)
        }


def test_bare_ranks_with_their_workers_and_leftovers_of_the_run_before(jobs: Started) -> None:
    jobs.write("train.py", WORKS)
    shell = "RANK={rank} {python} train.py & "
    address = {"WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29871}
    start = "".join(shell.format(rank=rank, python=sys.executable) for rank in (0, 1))
    jobs.start("bash", "-c", f"(RANK=0 {sys.executable} train.py &)", env=address)
    old = jobs.pid_of("rank0")
    jobs.pid_of("worker0")
    for name in ("rank0", "worker0"):
        os.unlink(jobs.folder / f"pid.{name}")
    jobs.start("bash", "-c", f"{start} wait", env=address)
    pids = [jobs.pid_of(f"rank{rank}") for rank in (0, 1)]
    workers = [jobs.pid_of(f"worker{rank}") for rank in (0, 1)]

    for pid in (*pids, *workers):
        job = job_of(pid)
        assert (job.launcher.kind, ranks(job)) == (
            "bare",
            {pids[0]: (0, "environment"), pids[1]: (1, "environment")},
        )
        assert roles(job) == {workers[0]: ("loader-worker", 0), workers[1]: ("loader-worker", 1)}
        assert (job.world_size, job.absent, job.elsewhere) == (2, (), False)
    assert old in [one.pid for one in job_of(pids[1]).leftovers]
    listed = [job for job in find_jobs() if pids[0] in ranks(job)]
    assert [sorted(ranks(job)) for job in listed] == [sorted(pids)]


def test_a_single_process_without_any_environment(jobs: Started) -> None:
    jobs.write("train.py", WORKS)
    jobs.start("env", "-i", f"{TOKEN}={jobs.token}", sys.executable, "train.py", "--rank", "0")
    pid = jobs.pid_of("rank0")
    worker = jobs.pid_of("worker0")

    job = job_of(worker)

    assert (job.launcher.kind, ranks(job), roles(job)) == (
        "single",
        {pid: (0, "only-process")},
        {worker: ("loader-worker", 0)},
    )
    assert (job.world_size, job.cwd, job.python) == (
        1,
        str(jobs.folder),
        os.path.realpath(sys.executable),
    )
    assert job.began == pytest.approx(time.time() - (job.age_s or 0), abs=2.0)


def test_a_launcher_by_its_name_whose_ranks_cleared_their_environment(jobs: Started) -> None:
    jobs.write("torchrun", LAUNCHES)
    jobs.write(
        "train.py",
        "from says import *\nnumber = os.environ['RANK']\ntime.sleep(0.3 *"
        " int(number))\nclear_environ()\nhere(f'rank{number}')\ntime.sleep(120)\n",
    )
    launcher = jobs.start(sys.executable, "torchrun", "--nproc-per-node", "2", "clear")
    pids = [jobs.pid_of(f"rank{rank}") for rank in (0, 1)]

    job = job_of(pids[1])

    assert (job.launcher.kind, job.launcher.pid) == ("torchrun", launcher)
    assert ranks(job) == {pids[0]: (0, "start-order"), pids[1]: (1, "start-order")}
    assert (job.world_size, job.world_size_source) == (2, "arguments")


def test_wrappers_and_survivors_of_an_earlier_attempt(jobs: Started) -> None:
    jobs.write("torchrun", LAUNCHES)
    jobs.write(
        "train.py",
        "from says import *\nname = ('first.', 'rank')[int(os.environ['ATTEMPT'])]\nhere(name +"
        " os.environ['RANK'])\ntime.sleep(120)\n",
    )
    jobs.start(sys.executable, "torchrun", "--nproc-per-node", "2")
    pids = [jobs.pid_of(f"rank{rank}") for rank in (0, 1)]
    first = [jobs.pid_of(f"first.{rank}") for rank in (0, 1)]

    job = job_of(pids[0])

    assert ranks(job) == {pids[0]: (0, "environment"), pids[1]: (1, "environment")}
    assert job.attempt == 1
    survivors = {one.pid: one.attempt for one in job.earlier_attempts if "bash" not in one.cmdline}
    assert survivors == {first[0]: 0, first[1]: 0}
    wrappers = [one for one in job.others if "bash" in one.cmdline and one.rank is not None]
    assert sorted((one.role, one.rank) for one in wrappers) == [("launcher", 0), ("launcher", 1)]


def test_a_table_of_many_processes_takes_little_time() -> None:
    took = []
    for _ in range(5):
        began = time.perf_counter()
        count = len(snapshot().by_pid)
        took.append((time.perf_counter() - began) / count)

    assert min(took) * 500 < 0.06


def test_this_test_runner_is_no_job() -> None:
    assert os.getpid() not in {pid for job in find_jobs() for pid in ranks(job)}
