import json
import os
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from sandbox import reward

HERE = os.path.dirname(os.path.abspath(__file__))
WORLD, PER_STEP, FEATS = 4, 2, 64


class Policy(nn.Module):
    def __init__(self, dim=64, actions=16):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(dim, dim), nn.GELU()) for _ in range(3)])
        self.head = nn.Linear(dim, actions)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def encode(task):
    x = torch.zeros(FEATS)
    for ch in task["prompt"].encode():
        x[ch % FEATS] += 0.1
    return x


def worker(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, timeout=timedelta(minutes=30))
    mesh = init_device_mesh("cpu", (WORLD,))
    torch.manual_seed(0)
    policy = Policy()
    for layer in policy.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(policy, mesh=mesh)
    opt = torch.optim.Adam(policy.parameters(), lr=1e-3)

    with open(os.path.join(HERE, "tasks.jsonl")) as f:
        tasks = [json.loads(line) for line in f]
    mine = tasks[rank::WORLD]
    baseline, cursor = 0.0, 0
    for step in range(100000):
        group = [mine[(cursor + k) % len(mine)] for k in range(PER_STEP)]
        cursor += PER_STEP
        rewards = torch.tensor([reward(t) for t in group])
        logp = torch.log_softmax(policy(torch.stack([encode(t) for t in group])), dim=-1)
        picked = logp.max(dim=-1).values
        loss = -((rewards - baseline) * picked).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean = rewards.mean()
        dist.all_reduce(mean)
        baseline = 0.9 * baseline + 0.1 * mean.item() / WORLD
        time.sleep(0.15)
        if rank == 0 and step % 10 == 0:
            print(f"step {step} baseline {baseline:.3f} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(port,), nprocs=WORLD)
