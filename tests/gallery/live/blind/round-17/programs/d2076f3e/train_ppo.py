import argparse
import os
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributions import Categorical

from env_worker import SubprocEnv
from scenes import build_library


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--scenes", default="scenes")
    p.add_argument("--num-envs", type=int, default=8)
    p.add_argument("--num-steps", type=int, default=48)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--minibatches", type=int, default=4)
    p.add_argument("--iterations", type=int, default=5000)
    p.add_argument("--promote-every", type=int, default=18)
    p.add_argument("--lr", type=float, default=2.5e-4)
    p.add_argument("--gamma", type=float, default=0.97)
    p.add_argument("--lam", type=float, default=0.95)
    return p.parse_args()


class Agent(nn.Module):
    def __init__(self, obs_dim, n_act):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh())
        self.pi, self.v = nn.Linear(256, n_act), nn.Linear(256, 1)

    def forward(self, x):
        h = self.body(x)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def reduce_gradients(agent, world):
    flat = torch.cat([p.grad.view(-1) for p in agent.parameters()])
    dist.all_reduce(flat, op=dist.ReduceOp.SUM)
    off = 0
    for p in agent.parameters():
        p.grad.copy_(flat[off:off + p.numel()].view_as(p) / world)
        off += p.numel()


def rollout(agent, env, obs, args):
    O, A, L, R, D, V = [], [], [], [], [], []
    for _ in range(args.num_steps):
        with torch.no_grad():
            pi, v = agent(obs)
            a = pi.sample()
        nobs, r, d = env.step(a.numpy())
        O.append(obs); A.append(a); L.append(pi.log_prob(a)); V.append(v)
        R.append(torch.from_numpy(r)); D.append(torch.from_numpy(d).float())
        obs = torch.from_numpy(nobs)
    with torch.no_grad():
        nv = agent(obs)[1]
    adv, last = [], torch.zeros(args.num_envs)
    for t in reversed(range(args.num_steps)):
        delta = R[t] + args.gamma * nv * (1 - D[t]) - V[t]
        last = delta + args.gamma * args.lam * (1 - D[t]) * last
        adv.insert(0, last)
        nv = V[t]
    adv = torch.cat(adv)
    return obs, torch.cat(O), torch.cat(A), torch.cat(L), adv, adv + torch.cat(V), torch.stack(R).mean()


def main():
    args = parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        build_library(args.scenes)
    dist.barrier()

    torch.manual_seed(1)
    agent = Agent(51, 5)
    opt = torch.optim.Adam(agent.parameters(), lr=args.lr, eps=1e-5)
    torch.manual_seed(100 + rank)
    env = SubprocEnv(args.scenes, rank, world, args.num_envs)
    obs = torch.from_numpy(env.reset())
    level, t0 = 0, time.time()

    for it in range(1, args.iterations + 1):
        if it % args.promote_every == 0 and level < 3:
            level += 1
            env.set_level(level)
            if rank == 0:
                print(f"curriculum level {level}", flush=True)
        obs, o, a, logp, adv, ret, rew = rollout(agent, env, obs, args)
        n = o.shape[0]
        for _ in range(args.epochs):
            for idx in torch.randperm(n).chunk(args.minibatches):
                pi, v = agent(o[idx])
                ratio = (pi.log_prob(a[idx]) - logp[idx]).exp()
                ad = adv[idx]
                ad = (ad - ad.mean()) / (ad.std() + 1e-8)
                pg = -torch.min(ratio * ad, ratio.clamp(0.8, 1.2) * ad).mean()
                loss = pg + 0.5 * (v - ret[idx]).pow(2).mean() - 0.01 * pi.entropy().mean()
                opt.zero_grad()
                loss.backward()
                reduce_gradients(agent, world)
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                opt.step()
        if rank == 0 and it % 5 == 0:
            sps = 5 * n * world / (time.time() - t0)
            t0 = time.time()
            print(f"iter {it} reward {rew.item():.4f} loss {loss.item():.4f} sps {sps:.0f}", flush=True)
    env.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
