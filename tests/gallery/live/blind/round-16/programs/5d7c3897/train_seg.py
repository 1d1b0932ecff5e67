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

from lib.data import StreetScenes
from lib.evaluate import validate
from lib.net import SegNet

CLASSES, IGNORE = 19, 255


def adjust_lr(opt, base, it, total, power=0.9):
    lr = base * (1 - it / total) ** power
    for group in opt.param_groups:
        group["lr"] = lr
    return lr


def worker(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.gpus)
    torch.manual_seed(304)
    model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(SegNet(CLASSES)) if args.sync_bn else SegNet(CLASSES))
    criterion = nn.CrossEntropyLoss(ignore_index=IGNORE)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)

    train_set = StreetScenes("train", 360)
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, 6, sampler=sampler, drop_last=True)
    val_loader = DataLoader(StreetScenes("val", 600), 4)
    total = args.epochs * len(loader)
    best = 0.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        t0 = time.time()
        for i, (image, label) in enumerate(loader):
            lr = adjust_lr(opt, args.lr, epoch * len(loader) + i, total)
            loss = criterion(model(image), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if i % 5 == 0 and rank == 0:
                print("Epoch: [%d/%d] Iter:[%d/%d], Time: %.2f, lr: %.5f, Loss: %.4f"
                      % (epoch, args.epochs, i, len(loader), (time.time() - t0) / (i + 1), lr, loss.item()))
        if rank == 0:
            valid_loss, mean_iou, iou = validate(model.module, val_loader, criterion, CLASSES, IGNORE)
            os.makedirs(args.output, exist_ok=True)
            torch.save({"epoch": epoch + 1, "best_mIoU": best, "state_dict": model.module.state_dict(),
                        "optimizer": opt.state_dict()}, os.path.join(args.output, "checkpoint.pth.tar"))
            if mean_iou > best:
                best = mean_iou
                torch.save(model.module.state_dict(), os.path.join(args.output, "best.pt"))
            print("Loss: %.3f, MeanIU: %.4f, Best_mIoU: %.4f" % (valid_loss, mean_iou, best))
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--gpus", type=int, default=2)
    p.add_argument("--epochs", type=int, default=484)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--sync-bn", action="store_true")
    p.add_argument("--output", default="runs")
    args = p.parse_args()
    mp.spawn(worker, (args, random.randint(20000, 55000)), nprocs=args.gpus)
