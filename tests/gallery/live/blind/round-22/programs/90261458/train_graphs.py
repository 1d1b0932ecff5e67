import os
import random
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from events import EventPipe, StopRequest


class GraphNet(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.enc, self.msg, self.out = nn.Linear(6, d), nn.Linear(d, d), nn.Linear(d, 1)

    def forward(self, x, adj):
        h = torch.relu(self.enc(x))
        for _ in range(2):
            h = torch.relu(h + adj @ self.msg(h) / adj.shape[0])
        return self.out(h).mean()


def sample_graph(rnd, gen):
    n = rnd.choice([12, 16, 20, 24, 30, 90])
    adj = (torch.rand(n, n, generator=gen) < 0.2).float()
    return torch.randn(n, 6, generator=gen), adj


def resample_hard_cases(model, gen, rank):
    """Every rank scans its own pool; pools differ in size."""
    scores = []
    for _ in range(120 + 30 * ((rank + resample_hard_cases.calls) % 3)):
        x = torch.randn(20, 6, generator=gen)
        with torch.no_grad():
            scores.append(model.module(x, torch.eye(20)).item())
        time.sleep(0.08)
    resample_hard_cases.calls += 1
    return sum(scores) / len(scores)


resample_hard_cases.calls = 0


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=15))
    rank = dist.get_rank()
    torch.manual_seed(2)
    model = DDP(GraphNet())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    rnd, gen = random.Random(rank), torch.Generator().manual_seed(rank)
    stop = StopRequest()
    events = EventPipe(os.environ["RUN_DIR"]) if rank == 0 else None
    for step in range(1, 100001):
        x, adj = sample_graph(rnd, gen)
        loss = (model(x, adj) - x.sum(1).mean()).square()
        time.sleep(0.004 * x.shape[0])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if events:
            events.emit(step=step, loss=loss.item(), nodes=x.shape[0])
            if step % 25 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % 100 == 0:
            mean = resample_hard_cases(model, gen, rank)
            dist.monitored_barrier(timeout=timedelta(minutes=10))
            if rank == 0:
                print(f"step {step} pool score {mean:.4f}", flush=True)
        flag = torch.tensor([float(stop.is_set())])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        if flag.item():
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
