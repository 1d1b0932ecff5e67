import argparse

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from yolite.nets import YoLite
from yolite.trainer import BaseTrainer


def quadrant_images(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, 24, 24, generator=g) * 0.3
    y = torch.randint(0, 4, (n,), generator=g)
    for i, c in enumerate(y.tolist()):
        x[i, :, 12 * (c // 2):12 * (c // 2) + 8, 12 * (c % 2):12 * (c % 2) + 8] += 0.5 + 0.2 * c
    return TensorDataset(x, y)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--val-interval", type=int, default=1)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--lr", type=float, default=0.02)
    args = p.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    tr, va = quadrant_images(640, 1), quadrant_images(128, 2)
    tl = DataLoader(tr, args.batch, sampler=DistributedSampler(tr))
    vl = DataLoader(va, args.batch)
    BaseTrainer(YoLite(), tl, vl, args).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
