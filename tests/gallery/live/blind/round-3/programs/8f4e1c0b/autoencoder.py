import time

import torch
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from slurm_env import SlurmEnvironment


def main():
    env = SlurmEnvironment()
    env.init()
    model = DDP(nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 64)))
    opt = torch.optim.Adam(model.parameters())
    for epoch in range(1000):
        for _ in range(50):
            x = torch.rand(32, 64)
            loss = (model(x) - x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.02)
        if env.global_rank == 0:
            print(f"Epoch {epoch}: train_loss={loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
