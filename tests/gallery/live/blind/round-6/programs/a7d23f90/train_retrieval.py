import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from sampler import CurriculumSampler
from triplets import Catalogue, CrossModalTriplets


class CenterLoss(nn.Module):
    def __init__(self, classes, dim):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(classes, dim))

    def forward(self, z, y):
        return (z - self.centers[y][:, None]).square().mean()


class Encoders(nn.Module):
    def __init__(self, classes, dim=48, out=32):
        super().__init__()
        self.enc = nn.ModuleList(nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, out)) for _ in range(3))
        self.cls = nn.Linear(out, classes)
        self.center = CenterLoss(classes, out)

    def forward(self, x, y):
        z = torch.stack([e(x[:, i]) for i, e in enumerate(self.enc)], 1)
        ce = F.cross_entropy(self.cls(z).flatten(0, 1), y.repeat_interleave(3))
        return ce + 0.1 * self.center(z, y)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--categories", type=int, default=40)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--num-workers", type=int, default=2)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    cat = Catalogue(a.categories)
    sampler = CurriculumSampler(cat, rank, world)
    loader = DataLoader(CrossModalTriplets(cat), a.batch_size, sampler=sampler, num_workers=a.num_workers, drop_last=True)
    model = nn.parallel.DistributedDataParallel(Encoders(a.categories))
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    for e in range(a.epochs):
        sampler.set_epoch(e)
        for it, (x, y) in enumerate(loader):
            loss = model(x, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.08)
            if rank == 0 and it % 10 == 0:
                print(f"epoch {e} it {it} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
