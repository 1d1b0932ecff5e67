import argparse
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler

from dataset import CurriculumSet
from history import LossHistory


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def build_model(dim=256):
    return nn.Sequential(nn.Linear(dim, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 2))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = torch.zeros(2)
    for _, x, y in loader:
        hits += torch.tensor([(model(x).argmax(1) == y).sum().item(), len(y)], dtype=torch.float)
    model.train()
    dist.all_reduce(hits)
    return (hits[0] / hits[1]).item()


def worker(rank, world, port, opt):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)

    history = LossHistory(opt.samples)
    if rank == 0:
        history.start_writer("runs/history.xz")
    train_set = CurriculumSet(opt.samples, history)
    sampler = DistributedSampler(train_set, world, rank, shuffle=True)
    loader = DataLoader(train_set, opt.batch, sampler=sampler, num_workers=opt.workers,
                        multiprocessing_context="fork", drop_last=True)
    plain = CurriculumSet(opt.samples, None)
    eval_loader = DataLoader(Subset(plain, range(rank, 800, world)), 100)

    model = DDP(build_model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(opt.epochs):
        sampler.set_epoch(epoch)
        for step, (index, x, y) in enumerate(loader):
            losses = nn.functional.cross_entropy(model(x), y, reduction="none")
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
            history.record(index, losses.detach())
            if rank == 0 and step % 25 == 0:
                print(f"epoch {epoch} step {step}/{len(loader)} loss {losses.mean().item():.4f}", flush=True)
        history.save_later()
        acc = evaluate(model, eval_loader)
        if rank == 0:
            print(f"epoch {epoch} accuracy {acc:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--samples", type=int, default=12000)
    parser.add_argument("--workers", type=int, default=2)
    opt = parser.parse_args()
    mp.spawn(worker, args=(opt.world, free_port(), opt), nprocs=opt.world)
