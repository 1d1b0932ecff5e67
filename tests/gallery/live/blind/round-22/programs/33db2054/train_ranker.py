import os
import queue
import tempfile
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from sessions import SessionBatches
from sharded_embedding import RowShardedEmbedding

ITEMS = 3000


class Tower(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.mix = nn.Linear(dim, dim)
        self.score = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.score(torch.tanh(self.mix(x)).mean(1)).squeeze(-1)


class Uploader(threading.Thread):
    """Ships finished files to the model registry."""

    def __init__(self):
        super().__init__(name="uploader", daemon=True)
        self.jobs = queue.Queue()

    def run(self):
        while True:
            path = self.jobs.get()
            time.sleep(9)
            os.remove(path)


def evaluate(embedding, tower, rank, batches=90):
    gen = iter(SessionBatches(1000 + rank, ITEMS))
    hits = torch.zeros(2)
    with torch.no_grad():
        for _ in range(batches):
            ids, clicked, cost = next(gen)
            hits[0] += ((tower(embedding(ids)) > 0) == (clicked > 0)).sum()
            hits[1] += len(clicked)
            time.sleep(2 * cost)
    dist.all_reduce(hits)
    return (hits[0] / hits[1]).item()


def export(tower, rank, folder, step, uploader):
    state = {k: v.full_tensor() for k, v in tower.state_dict().items()}
    if rank == 0:
        path = os.path.join(folder, f"tower-{step}.pt")
        torch.save(state, path)
        time.sleep(5)
        uploader.jobs.put(path)
    dist.barrier()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(rank)
    embedding = RowShardedEmbedding(ITEMS, 32, mesh.get_group())
    torch.manual_seed(0)
    tower = Tower()
    fully_shard(tower, mesh=mesh)
    optim = torch.optim.SGD([{"params": embedding.parameters(), "lr": 0.5}, {"params": tower.parameters(), "lr": 0.05}])
    uploader = Uploader()
    uploader.start()
    folder = tempfile.mkdtemp(prefix="ranker-")

    for step, (ids, clicked, cost) in enumerate(SessionBatches(rank, ITEMS), start=1):
        loss = F.binary_cross_entropy_with_logits(tower(embedding(ids)), clicked)
        optim.zero_grad()
        loss.backward()
        optim.step()
        time.sleep(0.05 + cost)
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % 150 == 0:
            accuracy = evaluate(embedding, tower, rank)
            if rank == 0:
                print(f"step {step} held-out accuracy {accuracy:.3f}", flush=True)
        if step % 200 == 0:
            export(tower, rank, folder, step, uploader)


if __name__ == "__main__":
    main()
