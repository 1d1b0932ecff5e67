import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from datasets_remote import RemoteImages


class AverageMeter:
    def __init__(self):
        self.sum = self.n = 0

    def update(self, v):
        self.sum += v
        self.n += 1

    @property
    def avg(self):
        return self.sum / max(self.n, 1)


def info_nce(a, b, t=0.2):
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    return F.cross_entropy(a @ b.T / t, torch.arange(len(a)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-b", type=int, default=16)
    p.add_argument("-j", type=int, default=4)
    a = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    ds = RemoteImages()
    loader = DataLoader(ds, batch_size=a.b, num_workers=a.j, sampler=DistributedSampler(ds), drop_last=True)
    net = DDP(nn.Sequential(nn.Conv2d(3, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU(),
                            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 32)))
    opt = torch.optim.SGD(net.parameters(), lr=0.03)
    batch_time, data_time = AverageMeter(), AverageMeter()
    end = time.time()
    for i, (x1, x2) in enumerate(loader):
        data_time.update(time.time() - end)
        loss = info_nce(net(x1), net(x2))
        opt.zero_grad()
        loss.backward()
        opt.step()
        batch_time.update(time.time() - end)
        end = time.time()
        if i % 5 == 0:
            print(f"[{rank}] {i}/{len(loader)} loss {loss.item():.3f} batch {batch_time.avg:.2f}s data {data_time.avg:.2f}s",
                  flush=True)


if __name__ == "__main__":
    main()
