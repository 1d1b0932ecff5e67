import argparse
import time

import torch
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from data_module import SFTDataModule
from dist_utils import setup


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cache_dir", default="cache")
    p.add_argument("--steps", type=int, default=5000)
    a = p.parse_args()
    rank, world = setup()
    print(f"rank {rank}/{world} up", flush=True)
    dm = SFTDataModule(a.cache_dir)
    dm.prepare()
    print(f"rank {rank} dataset {tuple(dm.data.shape)}", flush=True)
    net = nn.Sequential(nn.Embedding(128, 32), nn.Linear(32, 128))
    model = DDP(net)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(a.steps):
        batch = dm.data[torch.randint(0, len(dm.data), (8,))]
        logits = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"{{'loss': {loss.item():.4f}, 'step': {step}}}", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
