import argparse
import glob
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from chunkparser import ChunkParser


class ResBlock(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.c1 = nn.Conv2d(ch, ch, 3, padding=1)
        self.c2 = nn.Conv2d(ch, ch, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.c2(F.relu(self.c1(x))))


class ValueNet(nn.Module):
    def __init__(self, ch=32, blocks=3):
        super().__init__()
        self.stem = nn.Conv2d(4, ch, 3, padding=1)
        self.body = nn.Sequential(*[ResBlock(ch) for _ in range(blocks)])
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(ch * 64, 64), nn.ReLU(), nn.Linear(64, 1), nn.Tanh())

    def forward(self, x):
        return self.head(self.body(F.relu(self.stem(x)))).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--steps", type=int, default=100000)
    ap.add_argument("--batch-size", type=int, default=32)
    args = ap.parse_args()

    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    paths = sorted(glob.glob(os.path.join(args.data, "*.gz")))[rank::world]
    parser = ChunkParser(paths, args.batch_size, seed=rank)

    dist.init_process_group("gloo", timeout=timedelta(hours=2))
    torch.manual_seed(0)
    net = DDP(ValueNet())
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    total = 0.0
    for step, (x, y) in enumerate(parser.batches(), 1):
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += float(loss)
        if step % 25 == 0:
            if rank == 0:
                print(f"step {step} mse={total / 25:.4f} positions={step * args.batch_size * world}", flush=True)
            total = 0.0
        if step == args.steps:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
