import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from control import LRController


def blobs(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, 16, 16, generator=g)
    y = (x.mean((2, 3)).argmax(1))
    return TensorDataset(x, y)


def net():
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1), nn.GroupNorm(4, 24), nn.ReLU(),
        nn.Conv2d(24, 48, 3, stride=2, padding=1), nn.GroupNorm(4, 48), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 3))


@torch.no_grad()
def evaluate(model, loader):
    tot = torch.zeros(2)
    for x, y in loader:
        tot += torch.tensor([F.cross_entropy(model(x), y, reduction="sum").item(), float(len(y))])
    dist.all_reduce(tot)
    return (tot[0] / tot[1]).item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=3))
    rank = dist.get_rank()
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    store = dist.PrefixStore("control", store)
    torch.manual_seed(0)
    model = DDP(net())
    train_ds, val_ds = blobs(4800, 1), blobs(960, 2)
    sampler = DistributedSampler(train_ds)
    train = DataLoader(train_ds, 32, sampler=sampler)
    val = DataLoader(val_ds, 64, sampler=DistributedSampler(val_ds, shuffle=False))
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    ctl = LRController(store, rank, 2e-3)
    t0 = time.time()
    for epoch in range(200):
        sampler.set_epoch(epoch)
        for x, y in train:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        val_loss = evaluate(model.module, val)
        for g in opt.param_groups:
            g["lr"] = ctl.step(epoch, val_loss)
        if rank == 0:
            print(f"epoch {epoch:3d} train {loss.item():.4f} val {val_loss:.4f} lr {ctl.lr:.2e} {time.time() - t0:.0f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
