import argparse
import os
import random
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from engine.data import ContiguousDistributedSampler, Shapes
from engine.ema import ModelEMA
from engine.io import CheckpointWriter, start_plotter

CLASSES = 20


def conv(cin, cout, s=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, s, 1, bias=False), nn.BatchNorm2d(cout), nn.SiLU())


def build_model():
    return nn.Sequential(conv(3, 16, 2), conv(16, 32), conv(32, 48, 2), conv(48, 96),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, CLASSES))


@torch.no_grad()
def validate(model, loader, rank, world):
    cm = torch.zeros(CLASSES, CLASSES, dtype=torch.long)
    for x, y in loader:
        cm.view(-1).scatter_add_(0, y * CLASSES + model(x).argmax(1), torch.ones_like(y))
    stats = {"cm": cm.tolist(), "seen": int(cm.sum())}
    gathered = [None] * world if rank == 0 else None
    dist.gather_object(stats, gathered, dst=0)
    if rank == 0:
        total = sum(torch.tensor(s["cm"]) for s in gathered)
        return (total.diag().sum() / total.sum()).item(), total.tolist()
    return None, None


def worker(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.nproc)
    torch.manual_seed(0)
    net = build_model()
    ema = ModelEMA(net)
    model = DDP(net)
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    train_set, val_set = Shapes(2880, 0), Shapes(500, 10 ** 6)
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, 12, sampler=sampler, drop_last=True)
    val_loader = DataLoader(val_set, 20, sampler=ContiguousDistributedSampler(len(val_set), 20, rank, args.nproc))
    if rank == 0:
        writer = CheckpointWriter(args.project)
        plotter, plots = start_plotter(args.project)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        t0, running = time.time(), 0.0
        for i, (x, y) in enumerate(train_loader):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            ema.update(net)
            running += loss.item()
            if rank == 0 and i % 20 == 0:
                print("%d/%d  batch %d/%d  loss %.4f" % (epoch, args.epochs, i, len(train_loader), running / (i + 1)))
        ema.sync_buffers(net)
        acc, cm = validate(ema.ema, val_loader, rank, args.nproc)
        if rank == 0:
            print("epoch %d  top1 %.4f  %.1f s" % (epoch, acc, time.time() - t0))
            plots.put((epoch, cm))
            writer.submit("last.pt", {"epoch": epoch, "ema": ema.ema.state_dict(), "model": net.state_dict()})
    if rank == 0:
        plots.put(None)
        plotter.join()
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--nproc", type=int, default=2)
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--project", default="runs/exp")
    args = p.parse_args()
    mp.spawn(worker, (args, random.randint(20000, 55000)), nprocs=args.nproc)
