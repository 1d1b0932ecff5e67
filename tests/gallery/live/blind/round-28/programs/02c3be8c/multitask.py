import argparse
import multiprocessing
import os
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from regions import copy_to_head, gather_logits
from schedule import LABELLED, TaskSchedule


class SharedTrunk(nn.Module):
    def __init__(self, dim=32, hidden=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())

    def forward(self, x):
        return self.net(x)


class MultiTask(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.trunk = SharedTrunk()
        self.groups = groups
        self.heads = nn.ModuleDict({name: nn.Linear(64, 4) for name in groups})

    def forward(self, x, targets, tasks):
        h = self.trunk(x)
        losses = {}
        for name in tasks:
            out = self.heads[name](copy_to_head(h, self.groups[name]))
            losses[name] = F.mse_loss(out, targets[name])
        return losses


def average_heads(model, tasks):
    for name in sorted(tasks):
        for p in model.heads[name].parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


@torch.no_grad()
def report(model, x, targets, rank, step):
    pred = gather_logits(model.heads["depth"](model.trunk(x)), model.groups["depth"])
    ref = gather_logits(targets["depth"], model.groups["depth"])
    if rank == 0:
        print(f"step {step} depth rmse {F.mse_loss(pred, ref).sqrt().item():.4f}", flush=True)


def replica(rank, world, port, warmup):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    groups = {name: dist.new_group(timeout=timedelta(minutes=30)) for name in sorted(LABELLED)}
    model = MultiTask(groups)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = TaskSchedule(warmup)
    maps = {name: torch.randn(32, 4) for name in sorted(LABELLED)}
    g = torch.Generator().manual_seed(rank)
    step = 0
    while True:
        x = torch.randn(16, 32, generator=g)
        targets = {name: x @ m for name, m in maps.items()}
        tasks = schedule.active(step)
        losses = model(x, targets, tasks)
        optimizer.zero_grad()
        sum(losses.values()).backward()
        average_heads(model, tasks)
        optimizer.step()
        time.sleep(0.13)
        if step % 15 == 0:
            report(model, x, targets, rank, step)
        step += 1


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--world-size", type=int, default=2)
    p.add_argument("--warmup-steps", type=int, default=90)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ctx = multiprocessing.get_context("spawn")
    replicas = [ctx.Process(target=replica, args=(r, args.world_size, port, args.warmup_steps), name=f"replica{r}")
                for r in range(args.world_size)]
    for r in replicas:
        r.start()
    for r in replicas:
        r.join()


if __name__ == "__main__":
    main()
