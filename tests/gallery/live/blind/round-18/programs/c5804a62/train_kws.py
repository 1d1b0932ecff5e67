import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from loader import Prefetch, shard_pipeline


class KeywordNet(nn.Module):
    def __init__(self, mels=32, classes=10):
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(mels, 64, 5, padding=2), nn.ReLU(), nn.Conv1d(64, 96, 5, padding=2), nn.ReLU())
        self.rnn = nn.GRU(96, 96, batch_first=True)
        self.out = nn.Linear(96, classes)

    def forward(self, x):
        h = self.front(x.transpose(1, 2)).transpose(1, 2)
        return self.out(self.rnn(h)[0].mean(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--epochs", type=int, default=400)
    ap.add_argument("--batch-size", type=int, default=4)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(KeywordNet())
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    lossf = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        t0, n = time.time(), 0
        for x, y in Prefetch(shard_pipeline(args.data, rank, world, args.batch_size)):
            loss = lossf(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            n += 1
            if rank == 0 and n % 20 == 0:
                print(f"epoch {epoch} it {n} loss {loss.item():.4f} ({n * args.batch_size * world / (time.time() - t0):.0f} clips/s)", flush=True)
        dist.barrier()
        if rank == 0:
            torch.save(model.module.state_dict(), os.path.join(args.data, "last.pt"))


if __name__ == "__main__":
    main()
