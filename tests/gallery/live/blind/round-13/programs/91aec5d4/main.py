import argparse
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from data import GaussianPatches
from net import PatchMixer


def evaluate(model, loader):
    model.eval()
    stats = torch.zeros(2)
    with torch.no_grad():
        for x, y in loader:
            pred = model.module(x).argmax(1)
            stats[0] += (pred == y).sum()
            stats[1] += y.numel()
    dist.all_reduce(stats)
    model.train()
    return (stats[0] / stats[1]).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--epochs", type=int, default=1000)
    ap.add_argument("--bs", type=int, default=8)
    ap.add_argument("--print-freq", type=int, default=5)
    args = ap.parse_args()

    dist.init_process_group("gloo", init_method="env://")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    if rank == 0:
        print(f"world={world} threads={torch.get_num_threads()}", flush=True)

    train_set, val_set = GaussianPatches(16384, seed=1), GaussianPatches(512, seed=2)
    sampler = DistributedSampler(train_set, world, rank)
    loader = DataLoader(train_set, args.bs, sampler=sampler, drop_last=True)
    val_loader = DataLoader(val_set, args.bs, sampler=DistributedSampler(val_set, world, rank, shuffle=False))

    model = DistributedDataParallel(PatchMixer())
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    crit = torch.nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        end = time.time()
        for i, (x, y) in enumerate(loader):
            loss = crit(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if rank == 0 and (i + 1) % args.print_freq == 0:
                dt = (time.time() - end) / args.print_freq
                print(f"Epoch [{epoch}][{i + 1}/{len(loader)}] Time {dt:.3f} Loss {loss.item():.4f}", flush=True)
                end = time.time()
        acc = evaluate(model, val_loader)
        if rank == 0:
            print(f" * Prec@1 {acc:.3f}", flush=True)
            torch.save(model.module.state_dict(), os.path.join(args.out, "last.pth"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
