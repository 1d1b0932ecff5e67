import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader

from infos import load_infos
from samplers import GroupInDriveSampler
from voxels import DriveDataset, Pillars, RangeFilter, RemoveSparsePoints


class IterTimer:
    def __init__(self):
        self.t = time.time()
        self.data = self.total = 0.0
        self.n = 0

    def after_data(self):
        self.data += time.time() - self.t

    def after_iter(self):
        now = time.time()
        self.total += now - self.t
        self.t, self.n = now, self.n + 1

    def __str__(self):
        return f"time: {self.total / self.n:.3f} data_time: {self.data / self.n:.3f}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=24)
    p.add_argument("--samples-per-gpu", type=int, default=2)
    p.add_argument("--workers-per-gpu", type=int, default=1)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    infos = load_infos()
    ds = DriveDataset(infos, [RangeFilter(20.0), RemoveSparsePoints(), Pillars()])
    sampler = GroupInDriveSampler(len(ds), rank, world)
    dl = DataLoader(ds, a.samples_per_gpu, sampler=sampler, num_workers=a.workers_per_gpu, drop_last=True)
    net = nn.Sequential(nn.Conv2d(2, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 1))
    net = nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    for e in range(a.epochs):
        sampler.set_epoch(e)
        timer = IterTimer()
        for it, (v, y) in enumerate(dl, 1):
            timer.after_data()
            loss = (net(v)[:, 0] - y).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            timer.after_iter()
            if rank == 0 and it % 2 == 0:
                print(f"Epoch [{e}][{it}/{len(dl)}] {timer} loss: {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
