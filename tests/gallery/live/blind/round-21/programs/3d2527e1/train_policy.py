import os
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn

from rollout import PromptPool, Sampler

WORLD = 2
GROUPS = 2


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 6))

    def forward(self, x):
        return self.net(x).log_softmax(-1)


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def train(rank, rendezvous):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=WORLD,
                            timeout=timedelta(hours=1))
    torch.manual_seed(0)
    policy = Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
    pool = PromptPool(rank)
    sampler = Sampler(pool)
    skill = 1.0
    for update in range(1, 4000):
        idx, rewards = sampler.batch(skill, GROUPS)
        advantage = (rewards - rewards.mean(1, keepdim=True)) / rewards.std(1, keepdim=True)
        loss = -(policy(pool.features[idx]) * advantage).mean()
        time.sleep(0.1)
        opt.zero_grad()
        loss.backward()
        average_gradients(policy)
        opt.step()
        skill += 0.025
        if rank == 0 and update % 5 == 0:
            print(f"update {update} loss {loss.item():.4f} reward {rewards.mean():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="rl_") as tmp:
        mp.start_processes(train, args=(os.path.join(tmp, "rendezvous"),), nprocs=WORLD, start_method="forkserver")
