import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from centerhead import CenterHead, decode
from det_metric import CenterPrecision
from scenes import ParkingLotScenes


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=50)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--score-thr", type=float, default=0.3)
    p.add_argument("--val-every", type=int, default=2)
    return p.parse_args()


def validate(model, loader, metric, thr):
    model.eval()
    with torch.no_grad():
        for img, heat, _ in loader:
            h, wh = model(img)
            metric.update(decode(h, wh, thr), heat)
    value = metric.compute()
    metric.reset()
    model.train()
    return value


def main():
    args = get_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)
    model = DistributedDataParallel(CenterHead())
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    train = ParkingLotScenes(640, seed=1)
    val = ParkingLotScenes(96, seed=2)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, args.batch_size, sampler=sampler, num_workers=1, drop_last=True)
    vloader = DataLoader(val, args.batch_size, sampler=DistributedSampler(val, shuffle=False))
    metric = CenterPrecision()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        t0 = time.time()
        for it, (img, heat, _) in enumerate(loader):
            h, wh = model(img)
            loss = F.binary_cross_entropy_with_logits(h, heat) + 0.1 * (wh - 3).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.05)
        if rank == 0:
            print(f"[{epoch:3d}] loss {loss.item():.4f} ({time.time() - t0:.1f}s)", flush=True)
        if (epoch + 1) % args.val_every == 0:
            prec = validate(model.module, vloader, metric, args.score_thr)
            if rank == 0:
                print(f"[{epoch:3d}] val precision {prec:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
