import argparse
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from telemetry import NullTelemetry, Telemetry


class TileDataset(Dataset):
    def __init__(self, n, size, telemetry, seed=0):
        self.n, self.size, self.seed = n, size, seed
        self.telemetry = telemetry

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(self.seed * 1_000_003 + i)
        img = rng.random((3, self.size, self.size), dtype=np.float32)
        mask = (img.mean(0) > 0.5).astype(np.int64)
        if rng.random() < 0.5:
            img, mask = img[:, :, ::-1].copy(), mask[:, ::-1].copy()
            self.telemetry.incr("aug/hflip")
        self.telemetry.incr("tiles")
        return torch.from_numpy(img), torch.from_numpy(mask)


class UNetLite(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(3, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv2d(c, 2 * c, 3, stride=2, padding=1), nn.BatchNorm2d(2 * c), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.head = nn.Conv2d(2 * c, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.up(self.down2(a))
        return self.head(torch.cat([a, b], dim=1))


def evaluate(model, loader):
    inter = union = 0
    model.eval()
    with torch.no_grad():
        for img, mask in loader:
            pred = model(img).argmax(1)
            inter += ((pred == 1) & (mask == 1)).sum().item()
            union += ((pred == 1) | (mask == 1)).sum().item()
    model.train()
    t = torch.tensor([inter, union], dtype=torch.float64)
    dist.all_reduce(t)
    return (t[0] / t[1].clamp(min=1)).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=200)
    ap.add_argument("--tiles", type=int, default=320)
    ap.add_argument("--size", type=int, default=48)
    ap.add_argument("--bs", type=int, default=8)
    ap.add_argument("--workers", type=int, default=1)
    ap.add_argument("--out", default="out")
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    os.makedirs(args.out, exist_ok=True)
    tel = Telemetry(os.path.join(args.out, "telemetry.json.gz")) if rank == 0 else NullTelemetry()

    train_set = TileDataset(args.tiles, args.size, tel)
    val_set = TileDataset(args.tiles // 8, args.size, tel, seed=9)
    sampler = DistributedSampler(train_set, world, rank, drop_last=True)
    train = DataLoader(train_set, args.bs, sampler=sampler, num_workers=args.workers)
    val = DataLoader(val_set, args.bs, sampler=DistributedSampler(val_set, world, rank, shuffle=False),
                     num_workers=args.workers)
    torch.manual_seed(0)
    model = DDP(UNetLite())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        t0 = time.time()
        for img, mask in train:
            loss = nn.functional.cross_entropy(model(img), mask)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        iou = evaluate(model.module, val)
        tel.event(epoch=epoch, loss=loss.item(), iou=iou, seconds=time.time() - t0)
        if rank == 0:
            print(f"epoch {epoch:3d} loss {loss.item():.4f} iou {iou:.4f} {time.time() - t0:.1f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
