import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data import Blobs
from engine import evaluate, train_one_epoch


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def main_worker(rank, args):
    dist.init_process_group("gloo", rank=rank, world_size=args.world_size)
    torch.manual_seed(0)
    model = DistributedDataParallel(build_model())
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train_set, val_set = Blobs(1200, seed=1), Blobs(400, seed=2)
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=16, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=32)
    best = 0.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train_one_epoch(model, criterion, optimizer, train_loader, epoch, rank)
        if (epoch + 1) % args.eval_every == 0:
            if rank == 0:
                acc = evaluate(model, val_loader)
                print(f"epoch {epoch}: val acc {acc:.3f} (best {max(best, acc):.3f})")
                if acc > best:
                    best = acc
                    torch.save(model.module.state_dict(), "best.pth")
            dist.barrier()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world-size", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--eval-every", type=int, default=1)
    args = parser.parse_args()
    mp.spawn(main_worker, nprocs=args.world_size, args=(args,))
