import argparse
import os
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    PostLocalSGDState,
    post_localSGD_hook,
)
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from synth import ClickLog, shard


class Tower(nn.Module):
    def __init__(self, dim=48, hidden=64):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.head(self.bottom(x)).squeeze(-1)


class Meter:
    """Averages scalars over the workers, on its own group so that it can't mix with the training traffic."""

    def __init__(self):
        self.group = dist.new_group(backend="gloo", timeout=timedelta(minutes=40))
        self.total, self.count = 0.0, 0

    def add(self, v):
        self.total += v
        self.count += 1

    def reduce(self):
        t = torch.tensor([self.total, float(self.count)])
        dist.all_reduce(t, group=self.group)
        self.total, self.count = 0.0, 0
        return (t[0] / t[1].clamp(min=1)).item()


@torch.no_grad()
def validate(model, batches, meter):
    model.eval()
    for x, y in batches:
        meter.add(nn.functional.binary_cross_entropy_with_logits(model.module(x), y).item())
        time.sleep(0.05)
    model.train()
    return meter.reduce()


def build_optimizer(model, args):
    averager = PeriodicModelAverager(period=args.period, warmup_steps=args.warmup)
    return PostLocalSGDOptimizer(optim=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), averager=averager)


def train(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=args.nprocs, timeout=timedelta(minutes=40))
    torch.manual_seed(0)
    torch.set_num_threads(1)

    model = DDP(Tower())
    subgroup, _ = dist.new_subgroups(group_size=args.per_node)
    state = PostLocalSGDState(process_group=None, subgroup=subgroup, start_localSGD_iter=args.warmup)
    model.register_comm_hook(state, post_localSGD_hook)
    optimizer = build_optimizer(model, args)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**6, growth_interval=500)

    data = ClickLog()
    mine = shard(data, rank, args.nprocs)
    loader = DataLoader(mine, batch_size=32, shuffle=False, drop_last=True)
    val = [(torch.stack([data[i][0] for i in range(s, s + 16)]), torch.stack([data[i][1] for i in range(s, s + 16)]))
           for s in range(rank * 64, rank * 64 + 64, 16)]
    train_meter, val_meter = Meter(), Meter()

    step = 0
    while True:
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                logits = model(x)
            loss = nn.functional.binary_cross_entropy_with_logits(logits.float(), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(optimizer)
            scaler.update()
            train_meter.add(loss.item())
            time.sleep(0.12)
            if step and step % args.eval_every == 0:
                tl = train_meter.reduce()
                vl = validate(model, val, val_meter)
                if rank == 0:
                    print(f"step {step} train {tl:.4f} val {vl:.4f} scale {scaler.get_scale():.0f}", flush=True)
            step += 1


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--nprocs", type=int, default=3)
    p.add_argument("--per-node", type=int, default=1)
    p.add_argument("--period", type=int, default=5)
    p.add_argument("--warmup", type=int, default=15)
    p.add_argument("--eval-every", type=int, default=20)
    a = p.parse_args()
    mp.spawn(train, args=(a, free_port()), nprocs=a.nprocs)
