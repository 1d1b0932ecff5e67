import itertools
import os
import sys

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from rover.channels import Prefetch, stream_trace


def frames(root, rank, world):
    paths = sorted(os.listdir(root))[rank::world]
    for epoch in itertools.count():
        for p in paths:
            yield from stream_trace(os.path.join(root, p))


def batches(it, n):
    while True:
        yield torch.from_numpy(np.stack(list(itertools.islice(it, n))))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Conv2d(4, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
                              nn.Conv2d(32, 4, 3, padding=1)))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    src = Prefetch(frames(sys.argv[1], rank, world))
    for step, clean in enumerate(batches(src, 8)):
        noisy = clean + 0.3 * torch.randn_like(clean)
        loss = (model(noisy) - clean).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"step {step} mse {loss.item():.4f}")


if __name__ == "__main__":
    main()
