"""Ranks: processes of one group, forked before anything was calculated, with answer files."""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import torch
import torch.distributed as dist

from _model_stress.batches import Batch
from _model_stress.findings import Findings
from _model_stress.tested_model import TestedModel
from _shared import child_program
from _shared.child_processes import fork, kill_group, signal_name, wait_status
from _shared.proc import read_text

ALONE = -1  # the rank of a process without a group
GRACE_S = 4.0  # for the others to end where one rank has failed
Job = Callable[[int, Callable[[str], None]], Any]


class Answer(NamedTuple):
    """How one rank ended: `how` is done, raised, died or stood; `step` is its last. `value` was
    returned; `error` has type, message, frames and `module`, the innermost open one.
    """

    rank: int
    how: str
    value: Any = None
    error: Optional[Dict[str, Any]] = None
    step: str = ""
    why: str = ""


class ModuleError(Exception):
    """An exception with the name of the module that was open when it came."""

    def __init__(self, error: BaseException, module: str) -> None:
        super().__init__(child_program.message_of(error))
        self.error: BaseException = error
        self.module: str = module


def alone(job: Job, folder: str, deadline_s: float) -> Answer:
    """Call `job(ALONE, step)` in one process without a group."""
    return _gather({ALONE: _fork(job, ALONE, 1, folder, "", 0.0)}, folder, deadline_s)[0]


def together(
    job: Job,
    ranks: int,
    folder: str,
    deadline_s: float,
    backend: str = "gloo",
    wait_s: float = 10.0,
) -> List[Answer]:
    """Call `job(rank, step)` in `ranks` processes of one group; return their answers within
    `deadline_s` and a second. A collective waits `wait_s` for the others.
    """
    wait_s = max(2.0, min(wait_s, 0.6 * deadline_s))
    started = {rank: _fork(job, rank, ranks, folder, backend, wait_s) for rank in range(ranks)}
    return _gather(started, folder, deadline_s)


def _fork(job: Job, rank: int, ranks: int, folder: str, backend: str, wait_s: float) -> int:
    return fork(lambda: _rank(job, rank, ranks, folder, backend, wait_s))


def _rank(job: Job, rank: int, ranks: int, folder: str, backend: str, wait_s: float) -> None:
    steps = os.open(
        os.path.join(folder, f"steps.{rank}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
    )

    def step(name: str) -> None:
        os.write(steps, name.encode("utf-8", "replace") + b"\n")

    error: Optional[Dict[str, Any]] = None
    value: Any = None
    try:
        if rank != ALONE:
            step("meet")
            _meet(rank, ranks, folder, backend, wait_s)
        value = job(rank, step)
    except BaseException as raised:  # the user's code: whatever it is, it is the answer
        error = _error_fields(raised)
    torch.save({"value": value}, os.path.join(folder, f"value.{rank}"))
    child_program.answer(folder, f"answer{rank}", {"error": error})


def _meet(rank: int, ranks: int, folder: str, backend: str, wait_s: float) -> None:
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks)
    )
    if backend == "gloo" and os.path.isdir("/sys/class/net/lo"):
        # all ranks are here; the host's own name may not resolve
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    if backend == "nccl":
        torch.cuda.set_device(rank)
    store = f"file://{os.path.join(folder, 'store')}"
    dist.init_process_group(
        backend,
        init_method=store,
        rank=rank,
        world_size=ranks,
        timeout=dt.timedelta(seconds=wait_s),
    )


def _error_fields(raised: BaseException) -> Dict[str, Any]:
    module = ""
    if isinstance(raised, ModuleError):
        module, raised = raised.module, raised.error
    fields = child_program.error_fields(raised, 30)
    return {**fields, "message": fields["message"][:2000], "module": module}


def _gather(started: Dict[int, int], folder: str, deadline_s: float) -> List[Answer]:
    until, pause = time.monotonic() + deadline_s, 0.002
    ended: Dict[int, int] = {}
    while len(ended) < len(started) and time.monotonic() < until:
        for rank, pid in started.items():
            if rank in ended:
                continue
            status = wait_status(pid, 0.0)
            if status is not None:
                ended[rank] = status
                if _error(folder, rank) != {"error": None}:
                    until = min(until, time.monotonic() + GRACE_S)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
    for rank, pid in started.items():
        if rank not in ended:
            kill_group(pid)
            os.waitpid(pid, 0)
    return [_answer(folder, rank, ended) for rank in started]


def _error(folder: str, rank: int) -> Optional[Dict[str, Any]]:
    try:
        return dict(json.loads(read_text(os.path.join(folder, f"answer{rank}.json"))))
    except ValueError:
        return None


def _answer(folder: str, rank: int, ended: Dict[int, int]) -> Answer:
    steps, answer = read_text(os.path.join(folder, f"steps.{rank}")), _error(folder, rank)
    step = (steps.splitlines() or [""])[-1]
    if answer is None:
        if rank not in ended:
            return Answer(rank, "stood", step=step, why="did not end")
        name = signal_name(max(0, -os.waitstatus_to_exitcode(ended[rank])))
        why = f"died of {name}" if name else "left without an answer"
        return Answer(rank, "died", step=step, why=why)
    error = answer["error"]
    if error is not None:
        why = f"{error['type']}: {error['message'][:300]}"
        return Answer(rank, "raised", error=error, step=step, why=why)
    path = os.path.join(folder, f"value.{rank}")
    return Answer(rank, "done", torch.load(path, map_location="cpu", weights_only=False), step=step)


class Rounds(NamedTuple):
    """How processes are started: `fresh()` is a folder for a round."""

    tested: TestedModel
    findings: Findings
    batch: Batch
    ranks: int
    backend: str
    seed: int
    fresh: Callable[[], str]

    @property
    def left_s(self) -> float:
        return max(2.0, 0.8 * self.findings.left_s())


def in_one_process(rounds: Rounds, job: Job) -> Answer:
    return alone(job, rounds.fresh(), rounds.left_s)


def on_ranks(rounds: Rounds, job: Job) -> List[Answer]:
    wait_s = 5 + 100 * rounds.tested.traits.forward_s
    return together(job, rounds.ranks, rounds.fresh(), rounds.left_s, rounds.backend, wait_s)


def placed(rounds: Rounds, rank: int) -> TestedModel:
    """In a rank: the subject on the rank's own device."""
    if rounds.backend == "nccl":
        rounds.tested.device = f"cuda:{max(0, rank)}"
    return rounds.tested
