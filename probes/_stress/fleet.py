"""Ranks: processes of one group, forked from a suite's child that has calculated nothing yet, each with a file for its answer."""

from __future__ import annotations

import contextlib
import ctypes
import datetime as dt
import json
import os
import signal
import sys
import time
import traceback
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Optional

import torch
import torch.distributed as dist

from _stress.children import PR_SET_PDEATHSIG, signal_name
from _stress.look import message_of

ALONE = -1  # the rank of a process without a group
GRACE_S = 4.0  # for the others to end where one rank has failed
Job = Callable[[int, Callable[[str], None]], Any]


class Answer(NamedTuple):
    """What became of one rank: `how` is done, raised, died or stood. `step` is the last that it began.

    `value` is what it returned, `error` of an exception: type, message, frames and `module`, the innermost that was open.
    """

    rank: int
    how: str
    value: Any = None
    error: Optional[Dict[str, Any]] = None
    step: str = ""
    why: str = ""


class StandsInError(Exception):
    """An exception with the name of the module that was open when it came."""

    def __init__(self, error: BaseException, module: str) -> None:
        super().__init__(message_of(error))
        self.error: BaseException = error
        self.module: str = module


def alone(job: Job, folder: str, deadline_s: float) -> Answer:
    """Call `job(ALONE, step)` in one process without a group."""
    return _gather({ALONE: _fork(job, ALONE, 1, folder, "", 0.0)}, folder, deadline_s)[0]


def together(job: Job, ranks: int, folder: str, deadline_s: float, backend: str = "gloo", wait_s: float = 10.0) -> List[Answer]:
    """Call `job(rank, step)` in `ranks` processes of one group; return their answers by rank, within `deadline_s` and a second.

    A collective waits `wait_s` for the others.
    """
    wait_s = max(2.0, min(wait_s, 0.6 * deadline_s))
    started = {rank: _fork(job, rank, ranks, folder, backend, wait_s) for rank in range(ranks)}
    return _gather(started, folder, deadline_s)


def _fork(job: Job, rank: int, ranks: int, folder: str, backend: str, wait_s: float) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _rank(job, rank, ranks, folder, backend, wait_s)
    return pid


def _rank(job: Job, rank: int, ranks: int, folder: str, backend: str, wait_s: float) -> NoReturn:
    steps = os.open(os.path.join(folder, f"steps.{rank}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def step(name: str) -> None:
        os.write(steps, name.encode("utf-8", "replace") + b"\n")

    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        error: Optional[Dict[str, Any]] = None
        value: Any = None
        try:
            if rank != ALONE:
                step("meet")
                _meet(rank, ranks, folder, backend, wait_s)
            value = job(rank, step)
        except BaseException as raised:  # the user's code: whatever it is, it is the answer
            error = _described(raised)
        torch.save({"value": value}, os.path.join(folder, f"value.{rank}"))
        _written(os.path.join(folder, f"answer.{rank}"), json.dumps({"error": error}))
    finally:
        os._exit(0)


def _meet(rank: int, ranks: int, folder: str, backend: str, wait_s: float) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks))
    if backend == "gloo" and os.path.isdir("/sys/class/net/lo"):
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # all ranks are here; the host's own name may not resolve
    if backend == "nccl":
        torch.cuda.set_device(rank)
    store = f"file://{os.path.join(folder, 'store')}"
    dist.init_process_group(backend, init_method=store, rank=rank, world_size=ranks, timeout=dt.timedelta(seconds=wait_s))


def _described(raised: BaseException) -> Dict[str, Any]:
    module = ""
    if isinstance(raised, StandsInError):
        module = raised.module
        raised = raised.error
    frames = [
        {"file": one.filename, "line": one.lineno, "function": one.name, "text": (one.line or "")[:200]}
        for one in traceback.extract_tb(raised.__traceback__)[-30:]
    ]
    return {"type": type(raised).__name__, "message": message_of(raised)[:2000], "frames": frames, "module": module}


def _written(path: str, text: str) -> None:
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.part", path)


def _gather(started: Dict[int, int], folder: str, deadline_s: float) -> List[Answer]:
    until, pause = time.monotonic() + deadline_s, 0.002
    ended: Dict[int, Optional[int]] = {}
    while len(ended) < len(started) and time.monotonic() < until:
        for rank, pid in started.items():
            if rank in ended:
                continue
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                ended[rank] = status
                if _error(folder, rank) != {"error": None}:
                    until = min(until, time.monotonic() + GRACE_S)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
    for rank, pid in started.items():
        if rank not in ended:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return [_answer(folder, rank, ended) for rank in started]


def _error(folder: str, rank: int) -> Optional[Dict[str, Any]]:
    try:
        with open(os.path.join(folder, f"answer.{rank}"), encoding="utf-8") as file:
            return dict(json.load(file))
    except (OSError, ValueError):
        return None


def _answer(folder: str, rank: int, ended: Dict[int, Optional[int]]) -> Answer:
    step, told = "", _error(folder, rank)
    with contextlib.suppress(OSError, IndexError), open(os.path.join(folder, f"steps.{rank}"), encoding="utf-8") as file:
        step = file.read().splitlines()[-1]
    if told is None:
        status = ended.get(rank)
        if status is None:
            return Answer(rank, "stood", step=step, why="did not end")
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        return Answer(rank, "died", step=step, why=f"died of {signal_name(number)}" if number else "left without an answer")
    if told["error"] is not None:
        return Answer(rank, "raised", error=told["error"], step=step, why=f"{told['error']['type']}: {told['error']['message'][:300]}")
    return Answer(rank, "done", torch.load(os.path.join(folder, f"value.{rank}"), map_location="cpu", weights_only=False), step=step)
