# /// trainprobe
# rung: 60
# question: Do all ranks meet, and are gloo's collectives correct over CPU and TCP?
# scope: ranks
# needs: [torch, gloo, "ranks>=2"]
# timeout_s: 60
# climbs: [ranks]
# after: []
# means: The launcher, the rendezvous, the network interface or the host is at fault, since no
#   GPU takes part. NCCL's results mean nothing until this passes.
# ///
"""Run every collective at growing sizes with results that are known beforehand, and time them.

Environment: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT (torchrun's; alone it is a world
of one).
Flags: --backend gloo|nccl, --sizes BYTES,… (message sizes), --repeats N (timed rounds), --timeout-s
S (the process group's own). Element i of rank r is i % 97 + r + 1: small whole numbers, so that
float32 sums are exact for every order of adding (nccl-tests' method). Bus bandwidth by nccl-tests'
PERFORMANCE.md: size / time times a factor, with the time of the slowest rank.
"""

from __future__ import annotations

import datetime as dt
import os
import sys
import time
from typing import Any, Callable, Dict, Tuple

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit
from _shared import backend

# run it, was it right, bytes of the message, factor of the bus bandwidth
Op = Tuple[Callable[[], Any], Callable[[], bool], int, float]


def operations(
    torch: Any, dist: Any, me: _emit.RankEnvironment, device: str, size_bytes: int
) -> Dict[str, Op]:
    """Make buffers of one size, separate for each operation, so that none spoils another."""
    n, count = me.world_size, max(1, size_bytes // 4 // me.world_size)
    ramp = torch.arange(count * n, device=device) % 97 + 1.0
    mine, total = ramp + me.rank, ramp * n + n * (n - 1) / 2
    parts, whole = list(mine.chunk(n)), slice(me.rank * count, (me.rank + 1) * count)
    sent, reduced = (mine.clone() for _ in range(2))
    gathered = [torch.empty_like(mine) for _ in range(n)]
    scattered = torch.empty(count, device=device)
    exchanged = [torch.empty(count, device=device) for _ in range(n)]
    received, last = torch.empty_like(mine), n - 1
    equal = torch.equal

    def reduce() -> None:
        reduced.copy_(mine)
        dist.all_reduce(reduced)

    def to_the_next() -> None:  # a ring: a pair of neighbours that cannot talk shows up by name
        pending = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, mine, (me.rank + 1) % n),
                dist.P2POp(dist.irecv, received, (me.rank - 1) % n),
            ]
        )
        for request in pending:
            request.wait()

    size, share = mine.numel() * 4, (n - 1) / n
    operations_: Dict[str, Op] = {
        "broadcast": (
            lambda: dist.broadcast(sent, src=last),
            lambda: equal(sent, ramp + last),
            size,
            1.0,
        ),
        "all_reduce": (reduce, lambda: equal(reduced, total), size, 2 * share),
        "all_gather": (
            lambda: dist.all_gather(gathered, mine),
            lambda: all(equal(got, ramp + r) for r, got in enumerate(gathered)),
            size * n,
            share,
        ),
        "reduce_scatter": (
            lambda: dist.reduce_scatter(scattered, parts),
            lambda: equal(scattered, total[whole]),
            size,
            share,
        ),
        "all_to_all": (
            lambda: dist.all_to_all(exchanged, parts),
            lambda: all(equal(got, ramp[whole] + r) for r, got in enumerate(exchanged)),
            size,
            share,
        ),
    }
    if n > 1:
        operations_["send_recv"] = (
            to_the_next,
            lambda: equal(received, ramp + (me.rank - 1) % n),
            size,
            1.0,
        )
    return operations_


def timed(
    torch: Any, dist: Any, run: Callable[[], Any], repeats: int, device: str
) -> Tuple[float, int]:
    """The seconds of one round on the slowest rank, and that rank. A warm-up round is uncounted."""
    settle = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    run()
    settle()
    began = time.perf_counter()
    for _ in range(repeats):
        run()
    settle()
    took = torch.tensor(
        [(time.perf_counter() - began) / repeats], dtype=torch.float64, device=device
    )
    everyone = [torch.empty_like(took) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, took)
    seconds = [float(item) for item in everyone]
    return max(seconds), seconds.index(max(seconds))


def check(asked: Any, me: _emit.RankEnvironment) -> None:
    torch, dist, device = backend.torch_with(asked.backend, me.local_rank)
    with _emit.phase("init"):
        began = time.perf_counter()
        dist.init_process_group(
            asked.backend,
            rank=me.rank,
            world_size=me.world_size,
            timeout=dt.timedelta(seconds=asked.timeout_s),
        )
    with _emit.phase("barrier"):
        dist.barrier()
    source = "proposal; torch's own limits are 10 and 30 minutes"
    _emit.measure("init_s", round(time.perf_counter() - began, 4), "s", threshold=60, source=source)
    wrong, skipped = [], set()
    for size_bytes in asked.sizes:
        for name, (run, right, message_bytes, factor) in operations(
            torch, dist, me, device, size_bytes
        ).items():
            if name in skipped:
                continue
            try:
                with _emit.phase(f"{name}:{size_bytes}"):
                    took_s, slowest = timed(torch, dist, run, asked.repeats, device)
            except (RuntimeError, NotImplementedError) as error:
                if "not support" not in str(error) and "not implemented" not in str(error):
                    raise
                skipped.add(name)
                sentence = f"{asked.backend} does not support {name}: not tried."
                _emit.note(sentence, name="unsupported", op=name)
                continue
            if not right():
                wrong.append(name)
                sentence = f"{name} of {message_bytes} bytes gave a wrong result on rank {me.rank}."
                _emit.fail(sentence, op=name, bytes=message_bytes)
            if me.rank == 0:
                labels = {
                    "op": name,
                    "bytes": message_bytes,
                    "who": f"rank {slowest}",
                    "source": "nccl-tests PERFORMANCE.md",
                }
                measured = "latency_us" if size_bytes == asked.sizes[0] else "took_us"
                _emit.measure(measured, round(took_s * 1e6, 1), "us", **labels)
                _emit.measure(
                    "busbw_gbps", round(message_bytes / took_s * factor / 1e9, 4), "GB/s", **labels
                )
    with _emit.phase("destroy"):
        dist.barrier()
        dist.destroy_process_group()
    if wrong:
        _emit.result("no", f"Wrong results on rank {me.rank}: {', '.join(sorted(set(wrong)))}.")
    _emit.result("yes", f"{me.world_size} ranks met, and {asked.backend}'s collectives were exact.")


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    parser.add_argument("--backend", choices=("gloo", "nccl"), default="gloo")
    parser.add_argument(
        "--sizes",
        type=lambda text: [int(size) for size in text.split(",")],
        default=[1024, 65536, 1048576],
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--timeout-s", type=float, default=20.0)
    asked, me = parser.parse_args(), _emit.rank_environment()
    if asked.repeats < 1 or min(asked.sizes) < 1 or asked.timeout_s <= 0:
        _emit.result("cannot", "--sizes, --repeats and --timeout-s must be above zero.")
    backend.meet_alone(me.world_size)
    try:
        check(asked, me)
    except Exception as error:  # whatever torch raises is the answer to the question
        _emit.fail_exception(
            f"Rank {me.rank} of {me.world_size} failed", error, backend=asked.backend
        )
        _emit.result(
            "no", f"{asked.backend} failed on rank {me.rank}: {type(error).__name__}.", at_once=True
        )


if __name__ == "__main__":
    main()
