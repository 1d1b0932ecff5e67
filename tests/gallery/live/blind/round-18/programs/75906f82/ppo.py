import argparse
import json
import os
import queue
import signal
import threading
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from envs import VecEnv


class ActorCritic(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.pi = nn.Linear(width, 4)
        self.v = nn.Linear(width, 1)

    def forward(self, o):
        h = self.body(o)
        return self.pi(h), self.v(h).squeeze(-1)


class Journal:
    """Writes metrics on a thread; wakes up only when there is something to write."""

    def __init__(self, path):
        self.q = queue.Queue()
        self.f = open(path, "a")
        threading.Thread(target=self._run, daemon=True, name="journal").start()

    def _run(self):
        while True:
            self.f.write(json.dumps(self.q.get()) + "\n")
            self.f.flush()

    def put(self, **kw):
        self.q.put(kw)


def rollout(env, model, length):
    obs, acts, rews, dones, logps, vals = [], [], [], [], [], []
    with torch.no_grad():
        for _ in range(length):
            o = env.obs
            logits, v = model(o)
            d = torch.distributions.Categorical(logits=logits)
            a = d.sample()
            _, r, done = env.step(a)
            for lst, item in zip((obs, acts, rews, dones, logps, vals), (o, a, r, done, d.log_prob(a), v)):
                lst.append(item)
        last = model(env.obs)[1]
    adv, ret, g = torch.zeros(length, len(last)), torch.zeros(length, len(last)), torch.zeros_like(last)
    nxt = last
    for t in reversed(range(length)):
        live = (~dones[t]).float()
        g = rews[t] + 0.99 * nxt * live - vals[t] + 0.99 * 0.95 * live * g
        adv[t], ret[t], nxt = g, g + vals[t], vals[t]
    return [x.flatten(0, 1) for x in (torch.stack(obs), torch.stack(acts), torch.stack(logps), adv, ret)]


def evaluate(model, env, episodes=30):
    wins = ended = 0
    with torch.no_grad():
        while ended < episodes:
            _, r, done = env.step(model(env.obs)[0].argmax(-1))
            ended += int(done.sum())
            wins += int((r > 0).sum())
    return torch.tensor([float(wins), float(ended)])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--updates", type=int, default=100000)
    ap.add_argument("--envs", type=int, default=16)
    ap.add_argument("--length", type=int, default=48)
    ap.add_argument("--log-dir", required=True)
    args = ap.parse_args()
    torch.set_num_threads(1)
    seed = 1000 * (int(os.environ["RANK"]) + 1)
    env, eval_env = VecEnv(args.envs, seed), VecEnv(8, seed + 500)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(100 + rank)

    stop = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: stop.set())
    net = ActorCritic()
    ddp = DDP(net)
    opt = torch.optim.Adam(ddp.parameters(), lr=3e-4)
    journal = Journal(os.path.join(args.log_dir, f"rank{rank}.jsonl"))
    begin = time.time()

    for update in range(args.updates):
        o, a, lp, adv, ret = rollout(env, net, args.length)
        adv = (adv - adv.mean()) / (adv.std() + 1e-6)
        for _ in range(3):
            for idx in torch.randperm(len(o)).chunk(4):
                logits, v = ddp(o[idx])
                d = torch.distributions.Categorical(logits=logits)
                ratio = (d.log_prob(a[idx]) - lp[idx]).exp()
                pg = -torch.min(ratio * adv[idx], ratio.clamp(0.8, 1.2) * adv[idx]).mean()
                loss = pg + 0.5 * (v - ret[idx]).square().mean() - 0.01 * d.entropy().mean()
                opt.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(ddp.parameters(), 0.5)
                opt.step()
        journal.put(update=update, loss=loss.item(), t=round(time.time() - begin, 2))
        if update % 10 == 0:
            flag = torch.tensor(int(stop.is_set()))
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)
            if flag.item():
                break
        if update % 40 == 39:
            score = evaluate(net, eval_env)
            dist.all_reduce(score)
            if rank == 0:
                torch.save(net.state_dict(), os.path.join(args.log_dir, "policy.pt"))
                print(f"update {update} landed {score[0] / score[1]:.2%} {(time.time() - begin) / (update + 1) * 1e3:.0f} ms/update", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
