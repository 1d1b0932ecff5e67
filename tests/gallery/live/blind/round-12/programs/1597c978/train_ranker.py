import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from featcache import FeatureCache

ITEMS, DIM = 2048, 64


def teacher_features(rnd):
    gen = torch.Generator().manual_seed(rnd)
    base = torch.randn(ITEMS, DIM, generator=gen)
    return torch.tanh(base @ torch.randn(DIM, DIM, generator=gen) / DIM ** 0.5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", required=True)
    parser.add_argument("--steps-per-round", type=int, default=80)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DDP(nn.Sequential(nn.Linear(DIM, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, DIM)))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    cache = FeatureCache(args.cache)
    step = 0
    for rnd in range(500):
        if rank == 0:
            features = teacher_features(rnd)
            cache.write(rnd, features)
        dist.barrier()
        if rank != 0:
            features = cache.read(rnd)
        gen = torch.Generator().manual_seed(100 * rnd + rank)
        for _ in range(args.steps_per_round):
            idx = torch.randint(0, ITEMS, (32,), generator=gen)
            target = features[idx]
            noisy = target + 0.3 * torch.randn(target.shape, generator=gen)
            loss = nn.functional.mse_loss(model(noisy), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if rank == 0 and step == 1:
                print("training begins", flush=True)
            if rank == 0 and step % 20 == 0:
                print(f"round {rnd} step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
