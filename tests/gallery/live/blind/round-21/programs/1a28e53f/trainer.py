import multiprocessing as mp
import os
import queue
import threading
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from nets import actor

CKPT_EVERY = 250


def metrics_sink(conn):
    history = []
    while True:
        item = conn.recv()
        if item is None:
            return
        history.append(item)


class CheckpointThread(threading.Thread):
    def __init__(self, folder):
        super().__init__(daemon=True, name="checkpoint-writer")
        self.folder = folder
        self.jobs = queue.Queue(maxsize=2)

    def run(self):
        while True:
            iteration, state = self.jobs.get()
            partial = os.path.join(self.folder, f".iter_{iteration}.tmp")
            torch.save(state, partial)
            os.replace(partial, os.path.join(self.folder, f"iter_{iteration:07d}.pt"))


def train(group, folder, iterations=1_000_000):
    rank = dist.get_rank(group)
    torch.manual_seed(0)
    model = DistributedDataParallel(actor(), process_group=group)
    opt = torch.optim.Adam(model.parameters(), lr=3e-4)
    gen = torch.Generator().manual_seed(rank)
    if rank == 0:
        reader, writer_end = mp.Pipe(duplex=False)
        mp.get_context("spawn").Process(target=metrics_sink, args=(reader,), daemon=True).start()
        writer = CheckpointThread(folder)
        writer.start()
    for it in range(1, iterations + 1):
        obs = torch.randn(32, 10, generator=gen)
        act = torch.randint(0, 4, (32,), generator=gen)
        time.sleep(0.14)
        loss = F.cross_entropy(model(obs), act)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and it % 20 == 0:
            print(f"iter {it} loss {loss.item():.4f}", flush=True)
        if rank == 0 and it % CKPT_EVERY == 0:
            writer_end.send((it, loss.item()))
            writer.jobs.put((it, {k: v.clone() for k, v in model.module.state_dict().items()}))
    if rank == 0:
        open(os.path.join(folder, "final"), "w").close()
