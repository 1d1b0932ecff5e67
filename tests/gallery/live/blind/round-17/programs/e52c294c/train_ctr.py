import argparse
import json
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from planner import TableConfig, greedy_plan
from sharded_ebc import ShardedEmbeddingBagCollection


class RandomClicks:
    def __init__(self, tables, batch_size, seed, pool=24):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(pool):
            ids = {t.name: torch.randint(0, t.rows, (batch_size, t.pooling), generator=g) for t in tables}
            self.items.append((ids, torch.rand(batch_size, generator=g).round()))
        self.i = 0

    def __next__(self):
        self.i += 1
        return self.items[self.i % len(self.items)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--config", default="tables.json")
    p.add_argument("--steps", type=int, default=100000)
    args = p.parse_args()
    with open(args.config) as f:
        cfg = json.load(f)

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    tables = [TableConfig(t["name"], t["rows"], t["pooling"], cfg["embedding_dim"]) for t in cfg["tables"]]
    plan, used = greedy_plan(tables, world)
    if rank == 0:
        for r in range(world):
            names = [n for n, o in plan.items() if o == r]
            print(f"plan rank {r}: {used[r] / 2**20:.1f} MiB {names}", flush=True)

    ebc = ShardedEmbeddingBagCollection(tables, plan, rank, world)
    dense = DDP(nn.Sequential(nn.Linear(len(tables) * cfg["embedding_dim"], 128), nn.ReLU(),
                              nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1)))
    sparse_opt = torch.optim.SGD(ebc.parameters(), lr=0.01)
    dense_opt = torch.optim.Adam(dense.parameters(), lr=1e-3)
    data = RandomClicks(tables, cfg["batch_size"], seed=100 + rank)

    t0 = time.time()
    for step in range(1, args.steps + 1):
        ids, label = next(data)
        logit = dense(ebc(ids)).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(logit, label)
        sparse_opt.zero_grad()
        dense_opt.zero_grad()
        loss.backward()
        sparse_opt.step()
        dense_opt.step()
        if step % 20 == 0 and rank == 0:
            qps = 20 * world * cfg["batch_size"] / (time.time() - t0)
            print(f"step {step} loss {loss.item():.4f} qps {qps:.0f}", flush=True)
            t0 = time.time()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
