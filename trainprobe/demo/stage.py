"""One job of the demo, from its start until its log stands still. Whatever it started ends with
the block, and also where this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trainprobe.demo.jobs import DemoJob
from trainprobe.errors import UsageError
from trainprobe.model.evidence import Ended
from trainprobe.system.child import ChildSpec
from trainprobe.system.interruption import Interrupted, Interruption
from trainprobe.system.keeper import Keeper
from trainprobe.system.own_programs import folder_of_demos
from trainprobe.system.working_folders import working_folder
from trainprobe.targets import launch

SCRIPT, LOG = "train.py", "train.log"
# A log that has not grown for so long would worry somebody who watches it. To look sooner gains
# nothing: attach calls nothing hung before the ranks have waited for some ten seconds.
STILL_S = 5.0
START_S = 300.0  # torch is read from a cold disk, on few CPUs
BESIDE_S = 5.0
TAIL_LINES = 6


@dataclass(frozen=True)
class Hung:
    """A job whose log stands still. `pid` is that of its launcher, `log` its last lines."""

    pid: int
    folder: str
    log: tuple[str, ...]
    still_s: float


def command_of(job: DemoJob) -> str:
    """The command as its author would type it."""
    return f"torchrun --nproc-per-node {job.ranks} {SCRIPT}"


@contextlib.contextmanager
def hung_job(
    job: DemoJob,
    python: str,
    environ: Mapping[str, str] = os.environ,
    said: Callable[[str], None] = lambda _: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[Hung]:
    """Start `job` in a new folder with the Python `python`, and yield it once its log stands
    still. `said` hears each line of the log; `meanwhile` is called while the ranks import torch.

    Raises UsageError where it ends, or prints nothing, and Interrupted after Ctrl-C.
    """
    with working_folder() as folder:
        place = os.path.join(folder, "job")
        os.mkdir(place)
        shutil.copyfile(_program(job.program), os.path.join(place, SCRIPT))
        with Keeper(folder) as keeper:
            env = _environment(environ, folder)
            if job.beside:
                shutil.copyfile(_program(job.beside), os.path.join(place, f"{job.beside}.py"))
                keeper.start([_spec("beside", (python, "-u", f"{job.beside}.py"), env, place)])
                _await(keeper, os.path.join(place, job.beside_makes))
            run = (python, "-m", "torch.distributed.run", "--standalone")
            count = ("--nproc-per-node", str(job.ranks))
            keeper.start([_spec("job", (*run, *count, SCRIPT), env, place)])
            meanwhile()
            log, still_for_s = _watch(keeper, os.path.join(place, LOG), said)
            pid = keeper.children["job"].pid
            if pid is None:
                raise UsageError("The job was not started.", f"Try it by hand: {python} -V")
            yield Hung(pid, place, log, still_for_s)


def _program(name: str) -> str:
    return os.path.join(folder_of_demos(), f"{name}.py")


def _environment(environ: Mapping[str, str], folder: str) -> dict[str, str]:
    """The user's own, without the traces of a launcher; the jobs are small and use one thread and
    no GPU. What torch leaves in the temporary directory when it is killed goes with `folder`.
    """
    quiet = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false"}
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "PYTHONWARNINGS": "ignore"}
    return {**launch.clean(environ), **quiet, **offline, "TMPDIR": folder}


def _spec(key: str, words: tuple[str, ...], env: Mapping[str, str], place: str) -> ChildSpec:
    log = os.path.join(place, LOG if key == "job" else f"{key}.log")
    return ChildSpec(key, words, env, place, log, log)


def _await(keeper: Keeper, path: str) -> None:
    """Wait for the file that the program beside the job makes once it is ready."""
    with Interruption() as interruption:
        until = time.monotonic() + BESIDE_S
        while not os.path.exists(path) and time.monotonic() < until and not interruption.asked:
            keeper.wait(0.05)
    if interruption.asked:
        raise Interrupted


def _watch(keeper: Keeper, path: str, said: Callable[[str], None]) -> tuple[tuple[str, ...], float]:
    """Tell each line of the log until it stands still; return the last ones, and for how long."""
    lines: list[str] = []
    read, torn, began = 0, "", time.monotonic()
    last = began
    with Interruption() as interruption:
        while not interruption.asked:
            keeper.wait(0.2)
            now = time.monotonic()
            content = _new(path, read)
            read += len(content)
            *whole, torn = (torn + content.decode("utf-8", "replace")).split("\n")
            if content:
                last = now
            for line in whole:
                lines.append(line)
                said(line)
            if keeper.children["job"].ended is not None:
                raise UsageError(
                    f"The job of the demo ended by itself ({_end(keeper.children['job'].ended)}):"
                    f" {' '.join(' / '.join(lines[-3:]).split())[-600:]}",
                    "See what this machine has: trainprobe doctor.",
                )
            if keeper.trouble:
                raise UsageError(keeper.trouble, "See what this machine has: trainprobe doctor.")
            if _steps(lines) and now - last >= STILL_S:
                return tuple(lines[-TAIL_LINES:]), now - last
            if now - began > START_S:
                raise UsageError(
                    f"The job of the demo did not come to its first step within {START_S:.0f} s.",
                    "See what this machine has: trainprobe doctor.",
                )
    raise Interrupted


def _steps(lines: list[str]) -> bool:
    return any("step " in line for line in lines)


def _end(ended: Ended | None) -> str:
    if ended is None:
        return "nobody saw how"
    return ended.reason or f"{ended.how} {ended.code if ended.code is not None else ''}".strip()


def _new(path: str, read: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(read)
            return file.read(2**20)
    except OSError:
        return b""
