import os
import socket
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from event_writer import EventWriter, NullWriter


def make_dataset(n=1200, dim=24):
    g = torch.Generator().manual_seed(2)
    x = torch.randn(n, dim, generator=g)
    return TensorDataset(x, (x ** 2).sum(1, keepdim=True).sqrt())


def train_worker(rank, world, port, logdir):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(minutes=40))
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(24, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1)))
    optim = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    data = make_dataset()
    sampler = DistributedSampler(data, world, rank)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    writer = EventWriter(logdir) if rank == 0 else NullWriter()
    step = 0
    for epoch in range(10_000):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optim.zero_grad()
            loss.backward()
            optim.step()
            time.sleep(0.15)
            writer.add_scalar("train/loss", loss, step)
            for name, param in model.module.named_parameters():
                writer.add_histogram(f"grad/{name}", param.grad, step)
            step += 1
            if step % 20 == 0 and rank == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        if epoch % 10 == 9:
            writer.flush()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    world = 3
    mp.spawn(train_worker, args=(world, free_port(), tempfile.mkdtemp(prefix="events_")), nprocs=world)
