import datetime
import os
import socket
import threading

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from readers import Clips, summarizer

WORLD = 2


def report(outbox, rank):
    while True:
        step, mean = outbox.get()
        print(f"rank {rank} step {step} mean loss {mean:.4f}", flush=True)


def run(rank, port):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    ctx = mp.get_context("spawn")
    inbox, outbox = ctx.Queue(), ctx.Queue()
    helper = ctx.Process(target=summarizer, args=(inbox, outbox), daemon=False)
    helper.start()
    threading.Thread(target=report, args=(outbox, rank), name="report", daemon=True).start()
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, timeout=datetime.timedelta(minutes=30))
    model = DistributedDataParallel(nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 4)))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Clips(rank), batch_size=8, num_workers=1, prefetch_factor=12,
                        persistent_workers=True, multiprocessing_context="spawn")
    losses, step = [], 0
    while True:
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            threading.Event().wait(0.35)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
            step += 1
            if step % 20 == 0:
                inbox.put((step, losses))
                losses = []


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(port,), nprocs=WORLD)
