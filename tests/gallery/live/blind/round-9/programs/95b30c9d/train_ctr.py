import os
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from features import DIM, FeatureClient


class TwoTower(nn.Module):
    def __init__(self, users=5000, dim=32):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, dim))

    def forward(self, u, feats):
        return (self.user(u) * self.item(feats)).sum(-1)


def clicks(rank, batch):
    rng = np.random.default_rng(50 + rank)
    while True:
        users = rng.integers(0, 5000, size=batch)
        items = rng.zipf(1.3, size=batch) % 20000
        yield users, items, ((users + items) % 3 == 0).astype(np.float32)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(TwoTower())
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
    client = FeatureClient()
    t_log = time.time()
    for step, (u, i, y) in enumerate(clicks(rank, 256), 1):
        feats = client.lookup(i.tolist())
        logit = model(torch.from_numpy(u), torch.tensor(feats))
        loss = F.binary_cross_entropy_with_logits(logit, torch.from_numpy(y))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0 and rank == 0:
            print(f"step {step} logloss {loss.item():.4f} {50 * 256 * dist.get_world_size() / (time.time() - t_log):.0f} clicks/s")
            t_log = time.time()


if __name__ == "__main__":
    main()
