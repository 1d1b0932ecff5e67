import os
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from maze_env import MazeEnv
from sampler import ParallelSampler

WORLD_SIZE = 2
ENVS = ["courtyard", "warehouse"]
CURRICULUM = [(1, 60), (2, 2000), (3, 4000)]


class ActorCritic(nn.Module):
    def __init__(self, obs_dim, n_actions=4, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.pi = nn.Linear(hidden, n_actions)
        self.v = nn.Linear(hidden, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.pi(h), self.v(h).squeeze(-1)


def update(agent, optimizer, batch):
    data = torch.from_numpy(batch)
    obs, actions, rewards = data[:, :-2], data[:, -2].long(), data[:, -1]
    for _ in range(2):
        logits, values = agent(obs)
        adv = (rewards - values).detach()
        logp = torch.log_softmax(logits, -1).gather(-1, actions[:, None]).squeeze(-1)
        loss = -(logp * adv).mean() + 0.5 * (rewards - values).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
        time.sleep(0.03)
    return loss.item()


def learner(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD_SIZE, timeout=timedelta(minutes=60))
    torch.manual_seed(1)
    agent = DDP(ActorCritic(MazeEnv.obs_dim))
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
    ctx = mp.get_context("spawn")
    step = 0
    for difficulty, n_iters in CURRICULUM:
        sampler = ParallelSampler(ctx, ENVS[rank], difficulty)
        episodes = []
        for _ in range(n_iters):
            batch, infos = sampler.obtain_samples()
            episodes += infos
            loss = update(agent, optimizer, batch)
            if rank == 0 and step % 10 == 0:
                ret = sum(i.reward for i in episodes) / max(1, len(episodes))
                print(f"iter {step} level {difficulty} loss {loss:.4f} return {ret:.2f}", flush=True)
            step += 1
        tail = sampler.shutdown()
        cover = max(float((i.coverage > 0).mean()) for i in tail)
        print(f"[{ENVS[rank]}] level {difficulty} finished, coverage {cover:.2%}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(learner, args=(port,), nprocs=WORLD_SIZE)
