import argparse
import logging
import time

import torch
import torch.distributed as dist
from torch import nn

from rollouts import Env, Limiter, RolloutPool

log = logging.getLogger("rl")


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, x):
        return self.net(x)


def discounted(rews, gamma=0.97):
    out, acc = torch.zeros_like(rews), 0.0
    for t in range(len(rews) - 1, -1, -1):
        acc = rews[t] + gamma * acc
        out[t] = acc
    return out


def evaluate(policy, limiter, episodes, length):
    returns = []
    for i in range(episodes):
        limiter.acquire()
        try:
            _, _, rews = Env(10_000 + i).episode(policy, length)
            returns.append(rews.sum().item())
        finally:
            limiter.release()
    return sum(returns) / len(returns)


def update(policy, opt, batch, world):
    loss = 0.0
    for obs, acts, rews in batch:
        adv = discounted(rews)
        adv = (adv - adv.mean()) / (adv.std() + 1e-6)
        logp = -((policy(obs) - acts) ** 2).sum(-1) / (2 * 0.1**2)
        loss = loss - (adv * logp).mean() / len(batch)
    opt.zero_grad()
    loss.backward()
    for p in policy.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world
    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    opt.step()
    return loss.item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iters", type=int, default=5000)
    ap.add_argument("--episodes", type=int, default=4)
    ap.add_argument("--length", type=int, default=60)
    ap.add_argument("--threads", type=int, default=3)
    ap.add_argument("--slots", type=int, default=6)
    ap.add_argument("--eval-every", type=int, default=25)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {rank} %(message)s")
    torch.manual_seed(0)
    policy = Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=3e-4)
    limiter = Limiter(args.slots)
    pool = RolloutPool(policy, limiter, args.threads, args.length, seed=rank + 1)

    for it in range(1, args.iters + 1):
        batch = pool.take(args.episodes)
        loss = update(policy, opt, batch, world)
        if it % 5 == 0 and rank == 0:
            log.info("iter %d loss %.3f return %.2f", it, loss, sum(r.sum().item() for _, _, r in batch) / len(batch))
        if it % args.eval_every == 0 and rank == 0:
            t0 = time.time()
            score = evaluate(policy, limiter, episodes=10, length=2 * args.length)
            log.info("eval return %.2f in %.1fs", score, time.time() - t0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
