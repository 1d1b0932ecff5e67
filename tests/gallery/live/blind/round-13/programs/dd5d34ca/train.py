import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from dataset import CLASSES, CutoutDataset
from monitor import ResourceMonitor


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(48 * 16, len(CLASSES)),
    )


def run(args):
    rank = dist.get_rank()
    torch.manual_seed(11)
    model = DistributedDataParallel(build_model())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    crit = nn.CrossEntropyLoss()
    ds = CutoutDataset(os.path.join(args.data, f"train-{rank:05d}.jsonl"))
    step, t0 = 0, time.time()
    for epoch in range(args.epochs):
        loader = DataLoader(ds, batch_size=args.batch, shuffle=False, drop_last=True)
        for img, target in loader:
            loss = crit(model(img), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 10 == 0 and rank == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} {step / (time.time() - t0):.1f} it/s", flush=True)
    return model


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--epochs", type=int, default=500)
    ap.add_argument("--batch", type=int, default=16)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    monitor = ResourceMonitor(os.path.join(args.data, f"resources-{rank}.csv"))
    monitor.start()
    model = run(args)
    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join(args.data, "final.pt"))
    monitor.stop()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
