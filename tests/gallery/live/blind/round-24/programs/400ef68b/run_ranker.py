import multiprocessing as mp
import os
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

from helpers import STATUS, NegativeMiner, SpellHelper, export_index, serve_status

WORLD = 3


class QueryDataset(Dataset):
    def __init__(self, rank):
        self.rank = rank

    def __len__(self):
        return 100000

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(i * WORLD + self.rank)
        return torch.randn(24, generator=gen)


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 12))

    def forward(self, queries, negatives):
        q, n = self.tower(queries), self.tower(negatives)
        return (1.0 - (q * q).sum(-1) + (q * n).sum(-1)).clamp(min=0).mean()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def trainer(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(WORLD))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, timeout=timedelta(minutes=30))
    server = serve_status() if rank == 0 else None
    miner, speller, pool = NegativeMiner(), SpellHelper(), ThreadPoolExecutor(2, thread_name_prefix="index")
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(Ranker())
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    loader = DataLoader(QueryDataset(rank), batch_size=16, num_workers=1, prefetch_factor=8, persistent_workers=True)
    rng = random.Random(rank)
    negatives = torch.randn(16, 24)
    for step, queries in enumerate(loader, 1):
        if step % 25 == 1:
            ids = miner.mine([rng.randrange(1000) for _ in range(16)])
            negatives = torch.randn(16, 24) + torch.tensor(ids).float().unsqueeze(1) / 1000
            speller.fix(f"Round {step // 25}")
        loss = model(queries, negatives)
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(rng.choice([0.05, 0.1, 0.1, 0.15, 0.5]))
        STATUS["step"] = step
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f} status port {server.server_address[1]}", flush=True)
        if step % 90 == 0:
            export_index(pool, step)
            dist.barrier()
            if rank == 0:
                print(f"index of step {step} exported", flush=True)
    dist.destroy_process_group()


def main():
    ctx = mp.get_context("spawn")
    port = free_port()
    ranks = [ctx.Process(target=trainer, args=(r, port), name=f"trainer-{r}") for r in range(WORLD)]
    for p in ranks:
        p.start()
    for p in ranks:
        p.join()


if __name__ == "__main__":
    main()
