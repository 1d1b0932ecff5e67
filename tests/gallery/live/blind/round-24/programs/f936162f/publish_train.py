import os
import socket
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn

from publisher import WeightPublisher
from store_sync import StoreBarrier

WORLD = 3


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= WORLD


def worker(rank, port, control_port, root):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, timeout=timedelta(minutes=40))
    control = dist.TCPStore("127.0.0.1", control_port, WORLD, is_master=rank == 0,
                            timeout=timedelta(minutes=40))
    barrier = StoreBarrier(control, rank, WORLD, poll_s=1.0 if rank == 0 else 0.02)
    publisher = WeightPublisher(root, rank, WORLD, barrier, full_every=4)

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 64), nn.SiLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(100 + rank)
    for step in range(1, 5000):
        x = torch.randn(32, 64, generator=gen)
        loss = (model(x) - x[:, :1].sin()).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        time.sleep(0.15)
        average_gradients(model)
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % 20 == 0:
            publisher.publish(model, opt)
    dist.destroy_process_group()


def main():
    with tempfile.TemporaryDirectory(prefix="weights-") as root:
        mp.spawn(worker, args=(free_port(), free_port(), root), nprocs=WORLD)


if __name__ == "__main__":
    main()
