import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from monitor import ProcessMonitor


class Cell(nn.Module):
    """A recurrent cell written out step by step."""

    def __init__(self, dim):
        super().__init__()
        self.z = nn.Linear(2 * dim, dim)
        self.h = nn.Linear(2 * dim, dim)

    def forward(self, x):
        s = torch.zeros(x.shape[0], x.shape[2])
        for t in range(x.shape[1]):
            z = torch.sigmoid(self.z(torch.cat([x[:, t], s], -1)))
            s = (1 - z) * s + z * torch.tanh(self.h(torch.cat([x[:, t], s], -1)))
        return s


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seq", type=int, default=40)
    p.add_argument("--dim", type=int, default=128)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = DDP(nn.Sequential(Cell(args.dim), nn.Linear(args.dim, 10)))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    monitor = ProcessMonitor() if rank == 0 else None
    t0 = time.time()
    for step in range(1, 10 ** 7):
        x, y = torch.randn(16, args.seq, args.dim), torch.randint(0, 10, (16,))
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if monitor is not None:
            monitor.sample()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f} {10 / (time.time() - t0):.1f} it/s | {monitor.latest}", flush=True)
            t0 = time.time()


if __name__ == "__main__":
    main()
