import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

import models


class Images(Dataset):
    def __init__(self, n, train):
        self.n, self.train = n, train

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        x = torch.rand(3, 48, 48, generator=g)
        y = i % 100
        if self.train:
            if torch.rand(1).item() < 0.5:
                x = x.flip(-1)
            top, left = torch.randint(0, 17, (2,)).tolist()
            x = x[:, top:top + 32, left:left + 32]
        else:
            x = x[:, 8:40, 8:40]
        return (x - 0.45) / 0.25, y


class AverageMeter:
    def __init__(self):
        self.sum, self.count, self.val = 0.0, 0, 0.0

    def update(self, v):
        self.val, self.sum, self.count = v, self.sum + v, self.count + 1

    @property
    def avg(self):
        return self.sum / max(1, self.count)


def train(loader, model, criterion, optimizer, epoch, args):
    batch_time, data_time, losses = AverageMeter(), AverageMeter(), AverageMeter()
    model.train()
    end = time.time()
    for i, (images, target) in enumerate(loader):
        data_time.update(time.time() - end)
        loss = criterion(model(images), target)
        losses.update(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch_time.update(time.time() - end)
        end = time.time()
        if i % args.print_freq == 0 and dist.get_rank() == 0:
            print(f"Epoch: [{epoch}][{i}/{len(loader)}] Time {batch_time.val:.3f} ({batch_time.avg:.3f}) "
                  f"Data {data_time.val:.3f} ({data_time.avg:.3f}) Loss {losses.val:.4f} ({losses.avg:.4f})")


@torch.no_grad()
def validate(loader, model, criterion):
    model.eval()
    tot = torch.zeros(3)
    for images, target in loader:
        out = model.module(images)
        tot += torch.tensor([criterion(out, target).item() * len(target),
                             (out.argmax(1) == target).sum().item(), len(target)])
    dist.all_reduce(tot)
    if dist.get_rank() == 0:
        print(f" * Acc@1 {100 * tot[1] / tot[2]:.3f} loss {tot[0] / tot[2]:.4f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--arch", default="resnet_s")
    p.add_argument("--epochs", type=int, default=90)
    p.add_argument("-b", "--batch-size", type=int, default=16)
    p.add_argument("-j", "--workers", type=int, default=1)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--print-freq", type=int, default=5)
    args = p.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(getattr(models, args.arch)())
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    train_set, val_set = Images(24000, True), Images(600, False)
    sampler = DistributedSampler(train_set)
    kw = dict(batch_size=args.batch_size, num_workers=args.workers, persistent_workers=args.workers > 0)
    train_loader = DataLoader(train_set, sampler=sampler, drop_last=True, **kw)
    val_loader = DataLoader(val_set, sampler=DistributedSampler(val_set, shuffle=False), **kw)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer, epoch, args)
        validate(val_loader, model, criterion)
        scheduler.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
