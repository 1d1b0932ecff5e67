"""Jobs that only a GPU can run, each with the truth about it, started and asked as a user would."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.conftest import end, processes_with
from tests.e2e.tool import call, environment

PROGRAMS = Path(__file__).resolve().parent / "programs"
START_S, END_S = 120.0, 75.0


@dataclass(frozen=True)
class GpuJob:
    """`world` is 0 for a plain process without a launcher. `beside` runs first and stays, as
    another user's process where `stranger`. Who ends is explained by its log, the others are
    attached to.
    """

    program: str
    verdicts: tuple[str, ...]
    causes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    world: int = 0
    words: tuple[str, ...] = ()
    ends: bool = False
    settle_s: float = 12.0
    beside: str = ""
    stranger: bool = False
    options: tuple[str, ...] = ()


JOBS = {
    "endless-kernel": GpuJob("endless_kernel", ("hung",), ("gpu-kernel-hang",), (0,)),
    "endless-kernel-at-clipping": GpuJob(
        "endless_kernel", ("hung",), ("gpu-kernel-hang",), (0,), words=("clip",)
    ),
    "endless-kernel-of-one-rank": GpuJob(
        "endless_kernel_of_one_rank", ("hung",), ("gpu-kernel-hang",), (1,), world=2
    ),
    "endless-kernel-before-nccl": GpuJob(
        "watchdog_timeout", ("hung",), ("gpu-kernel-hang",), (0,), world=1, words=("600",)
    ),
    "endless-kernel-before-nccl-deep": GpuJob(
        "watchdog_timeout",
        ("hung",),
        ("gpu-kernel-hang",),
        (0,),
        world=1,
        words=("600",),
        options=("--deep",),
    ),
    "lock-of-one-rank": GpuJob("lock_of_one_rank", ("hung",), ("file-lock-held",), (1,), world=2),
    "healthy": GpuJob("healthy", ("healthy",), world=1),
    "healthy-two-ranks": GpuJob("healthy_two_ranks", ("healthy",), world=2),
    "healthy-long-steps": GpuJob("healthy_long_steps", ("healthy",), words=("work",)),
    "healthy-waiting-kernels": GpuJob(
        "healthy_long_steps", ("healthy", "undetermined"), ("",), words=("wait",)
    ),
    "starved": GpuJob("starved", ("slow",), ("data-starvation",)),
    "compiling": GpuJob("compiling", ("healthy", "slow"), ("", "rank-compiling")),
    "watchdog-timeout": GpuJob(
        "watchdog_timeout",
        ("hung", "crashed"),
        ("gpu-kernel-hang",),
        (0,),
        world=1,
        words=("20",),
        settle_s=45.0,  # the watchdog has said so; its own end waits for the kernel, too
    ),
    "two-ranks-one-gpu": GpuJob(
        "two_ranks_one_gpu", ("crashed",), ("duplicate-gpu",), (0, 1), world=2, ends=True
    ),
    "label-out-of-range": GpuJob(
        "label_out_of_range", ("crashed",), ("device-assert-index-range",), ends=True
    ),
    "illegal-access": GpuJob("illegal_access", ("crashed",), ("illegal-memory-access",), ends=True),
    "fork-after-cuda": GpuJob(
        "fork_after_cuda", ("crashed",), ("cuda-in-forked-worker",), ends=True
    ),
    "out-of-memory": GpuJob("out_of_memory", ("crashed",), ("cuda-oom",), ends=True),
    "memory-held": GpuJob(
        "needs_half_the_memory",
        ("crashed",),
        ("gpu-memory-held-by-other", "cuda-oom"),
        ends=True,
        beside="holds_memory",
        stranger=True,
    ),
}


def right(job: GpuJob, report: Mapping[str, Any]) -> bool:
    """Does the report give a verdict, a first cause and its ranks that are true of the job?"""
    first = (report.get("causes") or [{}])[0]
    return (
        report.get("verdict") in job.verdicts
        and first.get("id", "") in (job.causes or ("",))
        and (not job.causes or not first or tuple(first["ranks"]) == job.ranks)
    )


def has_gpu() -> bool:
    return os.path.exists("/proc/driver/nvidia/gpus") and bool(
        os.listdir("/proc/driver/nvidia/gpus")
    )


def asked(job: GpuJob, folder: Path) -> dict[str, Any]:
    """Start the job in this folder, ask about it, end it. `report` is what the tool said."""
    log = folder / "train.log"
    token = secrets.token_hex(8)
    with contextlib.ExitStack() as undo:
        undo.callback(_end_all, token)
        if job.beside:
            user = 65534 if job.stranger and os.geteuid() == 0 else None
            with (folder / "beside.log").open("wb") as sink:
                words = [sys.executable, str(PROGRAMS / f"{job.beside}.py")]
                beside = _start(words, folder, sink, token, user)
            _await_output(folder / "beside.log", beside)
        with log.open("wb") as sink:
            process = _start(_command(job), folder, sink, token)
        words = ["explain", str(log)]
        if job.ends:
            with contextlib.suppress(subprocess.TimeoutExpired):  # torch's own end can hang, too
                process.wait(END_S)
        else:
            _await_output(log, process)
            time.sleep(job.settle_s)
            words = ["attach", str(process.pid), *job.options]
        return _told([*words, "--case", str(folder / "case")], folder)


def _command(job: GpuJob) -> list[str]:
    program = [str(PROGRAMS / f"{job.program}.py"), *job.words]
    if not job.world:
        return [sys.executable, *program]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(job.world)]
    return [sys.executable, *launch, *program]


def _start(
    words: list[str], folder: Path, sink: IO[bytes], token: str, user: int | None = None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        words,
        cwd=folder,
        env=environment(token, **({} if user is None else {"HOME": "/tmp"})),
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=sink,
        start_new_session=True,
        user=user,
    )


def _await_output(log: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        if any(word in log.read_bytes() for word in (b"step", b"width", b"ready")):
            return
        time.sleep(0.2)


def _end_all(token: str) -> None:
    """A process whose kernel never ends takes seconds to die."""
    until = time.monotonic() + 60
    while (left := processes_with(token)) and time.monotonic() < until:
        end(list(left))
        time.sleep(0.2)


def _told(words: list[str], folder: Path) -> dict[str, Any]:
    report = folder / "report.json"
    began = time.monotonic()
    done = call([*words, "--json", str(report)], folder, environment(""), timeout_s=120)
    (folder / "said.txt").write_text(f"{done.stdout}\n{done.stderr}", encoding="utf-8")
    told = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return {"report": told, "code": done.returncode, "took_s": time.monotonic() - began}
