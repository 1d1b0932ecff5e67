import argparse
import logging
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from streaming import StreamingDataset


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a = nn.Conv2d(c, c, 3, padding=1)
        self.b = nn.Conv2d(c, c, 3, padding=1)
        self.norm = nn.GroupNorm(4, c)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.norm(x))))


class Net(nn.Module):
    def __init__(self, classes=10, c=24, depth=3):
        super().__init__()
        self.stem = nn.Conv2d(3, c, 3, padding=1)
        self.blocks = nn.Sequential(*[Block(c) for _ in range(depth)])
        self.head = nn.Linear(c, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data-local", default="data/train")
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--max-epochs", type=int, default=60)
    p.add_argument("--workers", type=int, default=2)
    args = p.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(17)
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{rank} %(name)s: %(message)s")
    log = logging.getLogger("train")

    run_id = os.environ["TORCHELASTIC_RUN_ID"][:8]
    ds = StreamingDataset(args.data_local, rank, world, args.batch_size, run_id=run_id)
    dl = DataLoader(ds, batch_size=args.batch_size, num_workers=args.workers,
                    persistent_workers=True, drop_last=True)
    model = DDP(Net())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    log.info("%d samples per rank", ds.size)

    step = 0
    for epoch in range(args.max_epochs):
        t0 = time.time()
        for x, y in dl:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            step += 1
            if step % 25 == 0 and rank == 0:
                log.info("epoch %d step %d loss %.4f", epoch, step, loss.item())
        if rank == 0:
            log.info("epoch %d finished in %.1fs", epoch, time.time() - t0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
