import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from metrics import Running


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--report-every", type=int, default=50)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = DDP(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    running = Running()
    for step in range(1, args.rows * 100):
        x = torch.randn(256, 32)
        y = (x[:, :3].sum(1, keepdim=True) > 0).float()
        logits = model(x)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running.add(loss.item(), ((logits > 0) == y.bool()).float().mean().item())
        if step % args.report_every == 0:
            text = running.report()
            print(f"[{os.uname().nodename}] step {step} {text}", flush=True)


if __name__ == "__main__":
    main()
