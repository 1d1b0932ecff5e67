import os

import torch
import torch.distributed as dist
import torch.nn as nn

from kb.negcache import NegativeCache
from kb.model import TransE


def main():
    rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(TransE(4000, 40))
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    cache = NegativeCache("shared_cache", 4000, rank)
    g = torch.Generator().manual_seed(rank)

    def log(msg):
        print(f"[rank {rank}] {msg}", flush=True)

    for step in range(2_000_000):
        if step % 400 == 0:
            cache.refresh(log)
        h = torch.randint(0, 4000, (256,), generator=g)
        r = torch.randint(0, 40, (256,), generator=g)
        t = (h * 13 + r) % 4000
        neg = torch.tensor(cache.pool)[torch.randint(0, len(cache.pool), (256,), generator=g)]
        loss = model(h, r, t, neg)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            log(f"step {step} margin loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
