import argparse
import time

import torch
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from distributed import init_distributed


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--hidden", type=int, default=32)
    a = p.parse_args()
    torch.set_num_threads(1)
    rank, world = init_distributed()
    net = DDP(nn.Sequential(nn.Linear(12, a.hidden), nn.Tanh(), nn.Linear(a.hidden, 1)))
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for it in range(100000):
        x = torch.randn(32, 12)
        loss = (net(x) - x.sin().sum(1, keepdim=True)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and it % 50 == 0:
            print(f"it {it} loss {loss.item():.4f}", flush=True)
        time.sleep(0.02)


if __name__ == "__main__":
    main()
