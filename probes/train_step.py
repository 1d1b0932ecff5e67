# /// trainprobe
# rung: 80
# question: Do DDP's loss and gradients on all ranks agree with those of one rank on the same
#   batch?
# scope: ranks
# needs: [torch]
# timeout_s: 90
# climbs: [ranks]
# after: [single_gpu, gloo_control]
# means: Single operations work, but a whole distributed step hangs or gives another result than
#   one process would.
# ///
"""Two steps of DistributedDataParallel, each rank on its share of a fixed global batch, against the
whole batch on one rank.

Environment: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT (torchrun's; alone it is a world
of one).
Flags: --backend gloo|nccl (nccl where every rank has a GPU and TRAINPROBE_DEVICE is not cpu),
--steps N, --timeout-s S (the process group's own).
"""

from __future__ import annotations

import datetime as dt
import math
import os
import sys
import time
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit
from _shared.backend import meet_alone

# Relative, in float32: the order of adding differs, so some 2**-24 for each of a few hundred terms.
# Measured on CPUs: 2e-7. On GPUs TF32 may round to 2**-11, and differently for another batch size.
TOLERANCE = {"cpu": 1e-4, "cuda": 1e-2}


def train(torch: Any, asked: Any, me: _emit.RankEnvironment, device: str) -> float:
    """Return the largest relative difference of losses and gradients from the reference."""
    dist = torch.distributed
    torch.manual_seed(11)
    network = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)
    ).to(device)
    alone = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)
    ).to(device)
    alone.load_state_dict(network.state_dict())
    with _emit.phase("ddp"):
        together = torch.nn.parallel.DistributedDataParallel(
            network, device_ids=[torch.device(device).index] if device != "cpu" else None
        )
    models = (together, alone)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    # rows for each rank; the whole batch is the same on every rank, from the seed
    rows, worst = 16, 0.0
    for place in range(asked.steps):
        inputs = torch.randn(rows * me.world_size, 32).to(device)
        targets = torch.randn(rows * me.world_size, 8).to(device)
        share = slice(me.rank * rows, (me.rank + 1) * rows)
        began = time.perf_counter()
        losses = []
        for what, model, part in (("together", together, share), ("alone", alone, slice(None))):
            with _emit.phase(f"step{place}:{what}"):
                model.zero_grad()
                loss = torch.nn.functional.mse_loss(model(inputs[part]), targets[part])
                loss.backward()
                losses.append(loss.detach().clone())
            if what == "together":
                with _emit.phase(f"step{place}:loss"):
                    dist.all_reduce(losses[0])
                    losses[0] /= me.world_size
                labels = {"step": place, "who": f"rank {me.rank}"}
                _emit.measure("step_s", round(time.perf_counter() - began, 5), "s", **labels)
        pairs = [
            (losses[0], losses[1]),
            *(
                (item.grad, other.grad)
                for item, other in zip(network.parameters(), alone.parameters())
            ),
        ]
        differences = [
            float((item - other).norm() / other.norm().clamp_min(1e-30)) for item, other in pairs
        ]
        worst = max(
            worst,
            *(float("inf") if math.isnan(difference) else difference for difference in differences),
        )
        for optimizer in optimizers:
            optimizer.step()
    return worst


def run(asked: Any, me: _emit.RankEnvironment) -> None:
    with _emit.phase("import:torch"):
        import torch
        import torch.distributed as dist
        import torch.nn.parallel
    on_gpu = (
        os.environ.get("TRAINPROBE_DEVICE") != "cpu"
        and torch.cuda.device_count() >= me.local_world_size
        and dist.is_nccl_available()
    )
    backend = asked.backend or ("nccl" if on_gpu else "gloo")
    device = f"cuda:{me.local_rank}" if backend == "nccl" else "cpu"
    if backend == "nccl":
        if not on_gpu:
            _emit.result(
                "cannot",
                f"{me.local_world_size} ranks here, but torch sees {torch.cuda.device_count()} GPUs"
                " or has no NCCL.",
            )
        torch.cuda.set_device(device)
    with _emit.phase("init"):
        dist.init_process_group(
            backend,
            rank=me.rank,
            world_size=me.world_size,
            timeout=dt.timedelta(seconds=asked.timeout_s),
        )
    worst = train(torch, asked, me, device)
    kind = torch.device(device).type
    _emit.measure(
        "ddp_relative_difference",
        worst,
        "ratio",
        threshold=TOLERANCE[kind],
        source="rounding of float32 (TF32 on GPUs), see TOLERANCE",
        who=f"rank {me.rank}",
    )
    with _emit.phase("destroy"):
        dist.barrier()
        dist.destroy_process_group()
    if not worst <= TOLERANCE[kind]:
        sentence = (
            f"Rank {me.rank} of {me.world_size} differs from one rank by {worst:.2g}, more than"
            f" {TOLERANCE[kind]:.2g}."
        )
        _emit.fail(sentence, difference=worst, backend=backend)
        _emit.result("no", sentence)
    _emit.result(
        "yes",
        f"DDP over {backend} on {me.world_size} ranks agrees with one rank within {worst:.1g}.",
    )


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    parser.add_argument("--backend", choices=("gloo", "nccl"), default="")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--timeout-s", type=float, default=20.0)
    asked, me = parser.parse_args(), _emit.rank_environment()
    # a timeout is then an exception with a name, not the watchdog's SIGABRT
    os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")
    if asked.steps < 1 or asked.timeout_s <= 0:
        _emit.result("cannot", "--steps and --timeout-s must be above zero.")
    meet_alone(me.world_size)
    try:
        run(asked, me)
    except Exception as error:  # whatever torch raises is the answer to the question
        _emit.fail_exception(f"Rank {me.rank} of {me.world_size} failed", error)
        sentence = f"The distributed step failed on rank {me.rank}: {type(error).__name__}."
        _emit.result("no", sentence, at_once=True)


if __name__ == "__main__":
    main()
