import gc
import os
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

from housekeeping import Uploader, Watch
from shards import ClientShards

WORLD = 3


def held_out_error(model, rounds=12):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for i in range(rounds):
            gen = torch.Generator().manual_seed(5000 + i)
            x = torch.randn(64, 20, generator=gen)
            total += torch.nn.functional.mse_loss(model(x), x[:, :3].sum(1, keepdim=True)).item()
            time.sleep(0.2)
    model.train()
    return total / rounds


def worker(rank, port):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, timeout=timedelta(minutes=30))
    gc.disable()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(20, 40), torch.nn.Tanh(), torch.nn.Linear(40, 1))
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    shards = ClientShards(rank, WORLD)
    uploader = Uploader()
    if rank == 0:
        uploader.start()
    Watch().start()

    for day in range(100000):
        seen = 0
        with Join([model]):
            for x, y in shards.day(day):
                time.sleep(0.15)
                loss = torch.nn.functional.mse_loss(model(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                seen += 1
                if rank == 0 and seen % 6 == 0:
                    print(f"day {day} session {seen} loss {loss.item():.4f}", flush=True)
        if day % 4 == 3:
            gc.collect()
            error = torch.tensor([held_out_error(net)])
            dist.all_reduce(error)
            if rank == 0:
                print(f"day {day} held out {error.item() / WORLD:.4f} reports {uploader.sent}", flush=True)
        if rank == 0:
            uploader.inbox.put({"day": day, "seen": seen})


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    mp.spawn(worker, args=(free,), nprocs=WORLD)
