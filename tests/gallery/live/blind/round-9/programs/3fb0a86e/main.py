import argparse
import os
import random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score

from engine import evaluate, train_one_epoch
from net import SmallNet


def make_split(n, seed, classes=10):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    x = torch.randn(n, 3, 24, 24, generator=g) + y.view(-1, 1, 1, 1) * 0.1
    return TensorDataset(x, y)


def worker(rank, args):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{args.port}", rank=rank, world_size=args.world_size)
    torch.manual_seed(1)

    train_set, val_set = make_split(2880, 0), make_split(400, 1)
    sampler = DistributedSampler(train_set, num_replicas=args.world_size, rank=rank)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=100)

    net = SmallNet()
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    metrics = MetricCollection({
        "acc": MulticlassAccuracy(10),
        "f1": MulticlassF1Score(10),
    })

    best = 0.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train_loss = train_one_epoch(model, train_loader, optimizer, epoch, rank)
        if rank == 0 and (epoch + 1) % args.eval_every == 0:
            scores = evaluate(net, val_loader, metrics)
            print(f"[epoch {epoch}] train {train_loss:.4f} " + " ".join(f"{k} {v:.4f}" for k, v in scores.items()), flush=True)
            if scores["acc"] > best:
                best = scores["acc"]
                torch.save(net.state_dict(), os.path.join(args.out, "best.pt"))

    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--world-size", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--eval-every", type=int, default=2)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--out", default="out")
    args = p.parse_args()
    os.makedirs(args.out, exist_ok=True)
    args.port = random.randint(20000, 50000)
    mp.spawn(worker, args=(args,), nprocs=args.world_size)
