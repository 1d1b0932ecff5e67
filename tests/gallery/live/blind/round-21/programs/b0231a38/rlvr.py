import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from math_reward import MathVerifier
from prompts import PowerTasks

GROUP, PROMPTS, ITERS, WARMUP = 4, 2, 5000, 60


class CharPolicy(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.emb = nn.Embedding(128, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, 128)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.out(h)


def encode(texts, width=80):
    ids = torch.zeros(len(texts), width, dtype=torch.long)
    for i, t in enumerate(texts):
        codes = [min(ord(ch), 127) for ch in t[:width]]
        ids[i, :len(codes)] = torch.tensor(codes)
    return ids


def rollout(tasks, level):
    texts, golds = [], []
    for _ in range(PROMPTS):
        expr, gold = tasks.problem(level)
        texts += tasks.completions(expr, GROUP)
        golds += [gold] * GROUP
    time.sleep(0.12)
    return texts, golds


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=60))
    torch.manual_seed(0)
    policy = DDP(CharPolicy())
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-4)
    tasks, verifier = PowerTasks(seed=4 + rank), MathVerifier()
    for it in range(ITERS):
        texts, golds = rollout(tasks, level=1 if it < WARMUP else 2)
        rewards = torch.tensor([verifier.score(t, g) for t, g in zip(texts, golds)])
        adv = (rewards.view(PROMPTS, GROUP) - rewards.view(PROMPTS, GROUP).mean(1, keepdim=True)).flatten()
        ids = encode(texts)
        logits = policy(ids[:, :-1])
        logp = torch.log_softmax(logits, -1).gather(-1, ids[:, 1:, None]).squeeze(-1).mean(1)
        loss = -(logp * adv).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        stats = torch.tensor([loss.item(), rewards.mean().item()])
        dist.all_reduce(stats)
        if rank == 0 and it % 10 == 0:
            print(f"iter {it} loss {stats[0] / 3:.4f} accuracy {stats[1] / 3:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
