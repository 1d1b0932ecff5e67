"""One member's part in a group over torch: an all_reduce whose result is known beforehand."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import _emit
from _node_pair.members import PairRequest
from _shared import backend

COUNTS = (256, 2**20)  # float32: 1 KiB and 4 MiB
REPEATS = 5


def reduce_together(request: PairRequest) -> None:
    """Sum numbers whose sum is exact in a group of the members, as gloo_control; never returns."""
    torch, dist, device = backend.torch_with(request.arm, request.local_rank)
    first = request.members[0][1] or request.members[0][0]
    where = f"tcp://{'[' + first + ']' if ':' in first else first}:{request.meeting_port}"
    try:
        _reduce(request, torch, dist, device, where)
    except Exception as error:  # whatever torch raises is the answer to the question
        _emit.fail_exception(f"{request.me} failed in {request.arm}", error, backend=request.arm)
        _emit.result(
            "no", f"{request.arm} failed on {request.me}: {type(error).__name__}.", at_once=True
        )


def _reduce(request: PairRequest, torch: Any, dist: Any, device: str, where: str) -> None:
    n, rank = len(request.members), request.rank
    with _emit.phase("init"):
        began = time.monotonic()
        dist.init_process_group(
            request.arm,
            init_method=where,
            rank=rank,
            world_size=n,
            timeout=dt.timedelta(seconds=request.meet_s),
        )
        _emit.measure("init_s", round(time.monotonic() - began, 3), "s")
    settle = torch.cuda.synchronize if device != "cpu" else lambda: None
    wrong = []
    for count in COUNTS:
        ramp = torch.arange(count, device=device) % 97 + 1.0
        right = ramp * n + n * (n - 1) / 2
        took = []
        with _emit.phase(f"all_reduce:{count * 4}"):
            for _ in range(REPEATS):
                sent = ramp + rank
                settle()
                began = time.perf_counter()
                dist.all_reduce(sent)
                settle()
                took.append((time.perf_counter() - began) * 1000)
                if not torch.equal(sent, right):
                    wrong.append(count * 4)
        least = min(took)
        _emit.measure("took_ms", round(least, 4), "ms", bytes=count * 4)
        value = round(count * 4 / least / 1e6 * 2 * (n - 1) / n, 4)
        labels = {"bytes": count * 4, "source": "nccl-tests PERFORMANCE.md"}
        _emit.measure("busbw_gbps", value, "GB/s", **labels)
    if wrong:
        _emit.fail(
            f"The sum of {n} members is wrong on {request.me}.", bytes=wrong[0], kind="wrong-result"
        )
        _emit.result("no", f"{request.arm} gave a wrong sum on {request.me}.", at_once=True)
    _emit.result(
        "yes",
        f"{request.me} met {n - 1} other{'s' if n > 2 else ''} over {request.arm}, and the sums"
        " were exact.",
        at_once=True,
    )
