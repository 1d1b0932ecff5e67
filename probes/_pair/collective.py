"""One member's part in a group over torch: an all_reduce whose result is known beforehand."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import _backend
import _emit
from _pair.asked import Asked

COUNTS = (256, 2**20)  # float32: 1 KiB and 4 MiB
REPEATS = 5


def reduce_together(asked: Asked) -> None:
    """Make a group of the members and sum numbers whose sum is exact. Does not return. Element i of rank r is i % 97 + r + 1, as in gloo_control.py."""
    torch, dist, device = _backend.torch_with(asked.arm, asked.local_rank)
    first = asked.members[0][1] or asked.members[0][0]
    where = f"tcp://{'[' + first + ']' if ':' in first else first}:{asked.meeting_port}"
    try:
        _reduce(asked, torch, dist, device, where)
    except Exception as error:  # whatever torch raises is the answer to the question
        _emit.fail_exception(f"{asked.me} failed in {asked.arm}", error, backend=asked.arm)
        _emit.result("no", f"{asked.arm} failed on {asked.me}: {type(error).__name__}.", at_once=True)


def _reduce(asked: Asked, torch: Any, dist: Any, device: str, where: str) -> None:
    n, rank = len(asked.members), asked.rank
    with _emit.phase("init"):
        began = time.monotonic()
        dist.init_process_group(asked.arm, init_method=where, rank=rank, world_size=n, timeout=dt.timedelta(seconds=asked.meet_s))
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
        _emit.measure("busbw_gbps", round(count * 4 / least / 1e6 * 2 * (n - 1) / n, 4), "GB/s", bytes=count * 4, source="nccl-tests PERFORMANCE.md")
    if wrong:
        _emit.fail(f"The sum of {n} members is wrong on {asked.me}.", bytes=wrong[0], kind="wrong-result")
        _emit.result("no", f"{asked.arm} gave a wrong sum on {asked.me}.", at_once=True)
    _emit.result("yes", f"{asked.me} met {n - 1} other{'s' if n > 2 else ''} over {asked.arm}, and the sums were exact.", at_once=True)
