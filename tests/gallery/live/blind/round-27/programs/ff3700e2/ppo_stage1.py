import argparse
import multiprocessing as mp
import socket
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

from exchange import Exchange
from stage_world import StageWorld

MAX_EPISODES = 25
MAX_STEPS = 60
HORIZON = 32


def ppo_update(policy, opt, memory):
    obs = torch.stack([o for o, _, _ in memory])
    act = torch.stack([a for _, a, _ in memory])
    rew = torch.tensor([r for _, _, r in memory])
    adv = (rew - rew.mean()) / (rew.std() + 1e-6)
    for _ in range(3):
        mean = policy(obs)
        loss = ((act - mean).pow(2).sum(-1) * adv[:, None]).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


def run(comm, env, policy, opt, rank):
    memory, updates = [], 0
    for episode in range(MAX_EPISODES):
        obs = env.reset()
        total, done, step = 0.0, False, 0
        while not done and step < MAX_STEPS:
            states = comm.gather(obs)
            actions = None
            if rank == 0:
                with torch.no_grad():
                    mean = policy(torch.stack(states))
                actions = list(mean + 0.1 * torch.randn_like(mean))
            action = comm.scatter(actions)
            obs, reward, done = env.step(action)
            total += reward
            step += 1
            rewards = comm.gather(reward)
            if rank == 0:
                memory += zip(states, actions, rewards)
                if len(memory) >= HORIZON * comm.world:
                    ppo_update(policy, opt, memory)
                    memory, updates = [], updates + 1
        print(f"Env {rank:02d}, Episode {episode:05d}, steps {step:03d}, reward {total:.1f}", flush=True)


def worker(rank, world, port):
    store = dist.TCPStore("127.0.0.1", port, world, rank == 0, timeout=timedelta(hours=2))
    dist.init_process_group("gloo", store=dist.PrefixStore("pg", store), rank=rank, world_size=world)
    torch.manual_seed(rank)
    policy = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2))
    for p in policy.parameters():
        dist.broadcast(p.data, 0)
    opt = torch.optim.Adam(policy.parameters(), lr=5e-5)
    comm = Exchange(dist.PrefixStore("env", store), rank, world)
    run(comm, StageWorld(rank), policy, opt, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--num-env", type=int, default=3)
    args = ap.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ctx = mp.get_context("spawn")
    procs = [ctx.Process(target=worker, args=(r, args.num_env, port)) for r in range(args.num_env)]
    for p in procs:
        p.start()
    for p in procs:
        p.join()
