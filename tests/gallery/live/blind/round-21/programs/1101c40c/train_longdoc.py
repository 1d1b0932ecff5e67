import os
import socket
import time
from contextlib import nullcontext
from datetime import timedelta
from multiprocessing import get_context

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from packing import WindowPlanner

WORLD = 3
WINDOW_SECONDS = 9.0


class DocEncoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.inp = nn.Linear(8, width)
        self.cell = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, doc, cost):
        time.sleep(cost)
        hidden, _ = self.cell(self.inp(doc))
        return self.out(hidden[:, -1])


def run(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, timeout=timedelta(minutes=30))
    torch.manual_seed(0)
    model = DDP(DocEncoder())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=2000)
    planner = WindowPlanner(WORLD, WINDOW_SECONDS)
    gen = torch.Generator().manual_seed(rank)
    for window in range(1, 5000):
        costs = planner.window()[rank]
        began = time.time()
        for i, cost in enumerate(costs):
            doc = torch.randn(1, max(4, int(cost * 40)), 8, generator=gen)
            sync = nullcontext() if i == len(costs) - 1 else model.no_sync()
            with sync:
                loss = (model(doc, cost) - doc.mean()).pow(2).mean() / len(costs)
                loss.backward()
        opt.step()
        sched.step()
        opt.zero_grad()
        print(f"[{rank}] window {window} docs {len(costs)} longest {max(costs):.1f} took {time.time() - began:.1f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ctx = get_context("spawn")
    ranks = [ctx.Process(target=run, args=(r, port)) for r in range(WORLD)]
    for p in ranks:
        p.start()
    for p in ranks:
        p.join()
