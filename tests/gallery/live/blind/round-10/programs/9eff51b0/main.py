import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from ema import ModelEma
from net import SmallNet


def make_set(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 10, (n,), generator=g)
    x = torch.randn(n, 3, 24, 24, generator=g)
    x[:, 0] += (y.float() / 5 - 1).view(-1, 1, 1)
    return TensorDataset(x, y)


def reduce_tensor(t):
    t = t.clone()
    dist.all_reduce(t)
    return t


@torch.no_grad()
def validate(net, loader, distributed=True):
    net.eval()
    counts = torch.zeros(2)
    for x, y in loader:
        counts += torch.tensor([(net(x).argmax(1) == y).sum().item(), len(y)], dtype=torch.float)
    net.train()
    if distributed:
        counts = reduce_tensor(counts)
    return (counts[0] / counts[1]).item()


def save_checkpoint(ema, step, folder="runs"):
    os.makedirs(folder, exist_ok=True)
    torch.save({"step": step, "ema": ema.shadow}, os.path.join(folder, "last.pt"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--val-every", type=int, default=200)
    parser.add_argument("--ema-decay", type=float, default=0.99)
    parser.add_argument("--ema-start", type=int, default=75)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    train_set = make_set(4096, 1)
    sampler = DistributedSampler(train_set, shuffle=True)
    loader = DataLoader(train_set, args.batch_size, sampler=sampler, drop_last=True)
    val_set = make_set(512, 2)
    val_loader = DataLoader(Subset(val_set, range(rank, len(val_set), dist.get_world_size())), 32)

    model = DDP(SmallNet())
    ema = ModelEma(model, args.ema_decay) if rank == 0 else None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            t0 = time.time()
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if ema is not None:
                ema.update(model)
            if rank == 0 and step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f} {time.time() - t0:.3f}s", flush=True)
            if step % args.val_every == 0:
                acc = validate(model.module, val_loader)
                if rank == 0:
                    print(f"step {step} acc {acc:.3f}", flush=True)
                if ema is not None and step >= args.ema_start:
                    ema.swap_in(model)
                    acc = validate(model.module, val_loader)
                    ema.swap_out(model)
                    save_checkpoint(ema, step)
                    print(f"step {step} ema acc {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
