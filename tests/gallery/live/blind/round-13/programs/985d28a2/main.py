import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from evaluator import Evaluator


def make_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    centers = torch.randn(12, 64, generator=torch.Generator().manual_seed(99))
    y = torch.randint(0, 12, (n,), generator=g)
    return centers[y] + 1.5 * torch.randn(n, 64, generator=g), y


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--run-dir", required=True)
    ap.add_argument("--steps", type=int, default=100000)
    ap.add_argument("--eval-every", type=int, default=150)
    ap.add_argument("--bootstrap", type=int, default=400)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 12))
    model = DDP(net)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = make_data(24000, 1)
    x, y = x[rank::world], y[rank::world]
    evaluator = Evaluator(args.run_dir, rank, world, make_data(9000, 2), args.bootstrap)
    start = time.time()
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(x), (128,))
        loss = nn.functional.cross_entropy(model(x[pick]), y[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 25 == 0:
            print(f"{time.time() - start:7.1f}s step {step} loss {loss.item():.4f}")
        if step % args.eval_every == 0:
            result = evaluator.run(net, step)
            if rank == 0:
                print(f"{time.time() - start:7.1f}s step {step} macro-f1 {result[0]:.4f} ci {result[1]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
