import argparse

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from engine.dist_utils import get_dist_info, init_dist
from engine.runner import EpochRunner


def build_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 10, (n,), generator=g)
    x = torch.randn(n, 3, 24, 24, generator=g) + y.view(-1, 1, 1, 1) * 0.05
    return TensorDataset(x, y)


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(512, 10),
    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--port", type=int, default=None)
    args = p.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    train_set, val_set = build_data(6000, 1), build_data(600, 2)
    model = build_model()

    init_dist("gloo", port=args.port)
    rank, world = get_dist_info()
    if rank == 0:
        print(f"Distributed training: {world} processes", flush=True)

    model = DDP(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train_loader = DataLoader(train_set, args.batch_size, sampler=DistributedSampler(train_set), drop_last=True)
    val_loader = DataLoader(val_set, 64, sampler=DistributedSampler(val_set, shuffle=False))
    runner = EpochRunner(model, opt)
    for _ in range(args.epochs):
        runner.train_epoch(train_loader)
        acc = runner.val_epoch(val_loader)
        if rank == 0:
            print(f"val acc {acc:.3f}", flush=True)


if __name__ == "__main__":
    main()
