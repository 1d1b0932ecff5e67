import argparse
import time
import urllib.request

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class TileDataset(Dataset):
    def __init__(self, base, zoom, n):
        side = int(n**0.5)
        self.base = base
        self.keys = [(zoom, i // side, i % side) for i in range(n)]

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, i):
        z, x, y = self.keys[i]
        with urllib.request.urlopen(f"{self.base}/{z}/{x}/{y}", timeout=30) as r:
            a = np.frombuffer(r.read(), dtype=np.float16).reshape(3, 32, 32)
        img = torch.from_numpy(a.astype(np.float32))
        return img, (img[0].mean() > img[1].mean()).long()


def convnet(c=16):
    return nn.Sequential(
        nn.Conv2d(3, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(c, 2 * c, 3, padding=1), nn.BatchNorm2d(2 * c), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(2 * c, 4 * c, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(4 * c, 2),
    )


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tiles", default="http://127.0.0.1:18931")
    ap.add_argument("--n", type=int, default=10000)
    ap.add_argument("--bs", type=int, default=8)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--epochs", type=int, default=10)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    ds = TileDataset(args.tiles, 12, args.n)
    sampler = DistributedSampler(ds, world, rank, drop_last=True)
    loader = DataLoader(ds, args.bs, sampler=sampler, num_workers=args.workers, prefetch_factor=2, drop_last=True)
    torch.manual_seed(0)
    model = DDP(convnet())
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        end, data_t, step_t = time.time(), 0.0, 0.0
        for i, (x, y) in enumerate(loader):
            data_t += time.time() - end
            t0 = time.time()
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step_t += time.time() - t0
            if rank == 0:
                print(f"epoch {epoch} [{i}/{len(loader)}] loss {loss.item():.3f} "
                      f"data {data_t / (i + 1):.2f}s step {step_t / (i + 1):.2f}s", flush=True)
            end = time.time()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
