import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.algorithms.model_averaging.averagers as averagers
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    PostLocalSGDState,
    post_localSGD_hook,
)
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

from graphs import GraphBuckets

PERIOD = 16
WARMUP = 12
EVAL_EVERY = 96


class GraphNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.lift = nn.Linear(16, width)
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, 2)

    def forward(self, adj, x):
        deg = adj.sum(1, keepdim=True).clamp(min=1)
        h = torch.relu(self.lift(x))
        h = torch.relu(self.mix(adj @ h / deg)) + h
        return self.out(h.mean(0, keepdim=True))


def pace(adj):
    time.sleep(0.06 + 0.0012 * adj.shape[0])


@torch.no_grad()
def evaluate(net, rank, world, n_graphs=60):
    data = GraphBuckets(rank, world, seed=10_000)
    hits = torch.zeros(2)
    for i in range(n_graphs):
        adj, x, y = data.sample(period=i)
        hits += torch.tensor([float(net(adj, x).argmax(1) == y), 1.0])
        time.sleep(0.2)
    dist.all_reduce(hits)
    return (hits[0] / hits[1]).item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=40))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(8)
    model = DDP(GraphNet())
    subgroup, _ = dist.new_subgroups(group_size=1)
    model.register_comm_hook(
        PostLocalSGDState(process_group=None, subgroup=subgroup, start_localSGD_iter=WARMUP),
        post_localSGD_hook,
    )
    opt = PostLocalSGDOptimizer(
        optim=torch.optim.SGD(model.parameters(), lr=0.05),
        averager=averagers.PeriodicModelAverager(period=PERIOD, warmup_steps=WARMUP),
    )
    data = GraphBuckets(rank, world)
    pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="graph-builder")
    upcoming = pool.submit(data.sample, 0)
    running = 0.0
    for step in range(1, 200_000):
        adj, x, y = upcoming.result()
        upcoming = pool.submit(data.sample, step // PERIOD)
        loss = nn.functional.cross_entropy(model(adj, x), y)
        opt.zero_grad()
        loss.backward()
        pace(adj)
        opt.step()
        running = 0.95 * running + 0.05 * loss.item()
        if rank == 0 and step % PERIOD == 0:
            print(f"step {step} nodes {adj.shape[0]} loss {running:.4f}", flush=True)
        if step % EVAL_EVERY == 0:
            model.eval()
            acc = evaluate(model.module, rank, world)
            model.train()
            if rank == 0:
                print(f"step {step} accuracy {acc:.3f}", flush=True)


if __name__ == "__main__":
    main()
