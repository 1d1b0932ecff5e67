import multiprocessing as mp
import os
import socket
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from scoring import OfflineScorer

WORLD = 3
DIM = 32


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def train(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(DIM, 16, bias=False))
    optim = torch.optim.Adam(model.parameters(), lr=1e-3)
    scorer = OfflineScorer()
    query_log = []
    for step in range(1, 100000):
        batch = torch.randn(24, DIM)
        query_log.append(batch.numpy())
        anchor, positive = model(batch), model(batch + 0.1 * torch.randn_like(batch))
        loss = torch.nn.functional.cross_entropy(anchor @ positive.T, torch.arange(24))
        optim.zero_grad()
        loss.backward()
        optim.step()
        time.sleep(0.12)
        if step % 10 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)
        if step % 25 == 0 and rank == 0:
            weight = model.module.weight.detach().numpy().copy()
            mean = scorer.run(weight, np.concatenate(query_log))
            print(f"step {step} queries {len(query_log) * 24} mean top score {mean:.3f}", flush=True)


def main():
    port = free_port()
    ctx = mp.get_context("spawn")
    ranks = [ctx.Process(target=train, args=(r, port), name=f"rank{r}") for r in range(WORLD)]
    for p in ranks:
        p.start()
    for p in ranks:
        p.join()


if __name__ == "__main__":
    main()
