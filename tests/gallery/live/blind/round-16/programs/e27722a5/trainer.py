import argparse
import json
import os
import tempfile
import threading
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from reward_pool import RewardPool

VOCAB, DIM, LENGTH = 128, 96, 20


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.rnn = nn.GRU(DIM, DIM, num_layers=2, batch_first=True)
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, tokens):
        h, _ = self.rnn(self.emb(tokens))
        return self.head(h)


@torch.no_grad()
def generate(model, prompts):
    state, token, out = None, prompts, [prompts]
    for _ in range(LENGTH - 1):
        h, state = model.rnn(model.emb(token), state)
        token = torch.multinomial(model.head(h[:, -1]).softmax(-1), 1)
        out.append(token)
    return torch.cat(out, 1)


class Heartbeat(threading.Thread):
    def __init__(self, path, every=5.0):
        super().__init__(name="heartbeat", daemon=True)
        self.path, self.every, self.state = path, every, {}
        self.stop = threading.Event()

    def run(self):
        while not self.stop.wait(self.every):
            with open(self.path, "w") as f:
                json.dump({**self.state, "time": time.time()}, f)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=100000)
    p.add_argument("--prompts", type=int, default=8)
    p.add_argument("--samples", type=int, default=4)
    p.add_argument("--eval-every", type=int, default=60)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(50 + rank)
    model = DDP(Policy())
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    pool = RewardPool()
    beat = Heartbeat(os.path.join(tempfile.mkdtemp(prefix="rl-"), f"rank{rank}.json"))
    beat.start()
    dist.barrier()

    t0 = time.time()
    for step in range(1, args.steps + 1):
        prompts = torch.randint(VOCAB, (args.prompts, 1)).repeat_interleave(args.samples, 0)
        seqs = generate(model.module, prompts)
        answers = [[(s[0] + 2 * k) % VOCAB for k in range(LENGTH)] for s in prompts.tolist()]
        jobs = pool.submit(list(zip(seqs.tolist(), answers)))
        logits = model(seqs[:, :-1])
        logp = -F.cross_entropy(logits.transpose(1, 2), seqs[:, 1:], reduction="none").mean(1)
        reward = torch.tensor(pool.gather(jobs)).view(args.prompts, args.samples)
        adv = (reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)
        loss = -(adv.flatten() * logp).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        beat.state = {"step": step}
        if step % 20 == 0:
            stat = reward.mean()
            dist.all_reduce(stat)
            if rank == 0:
                print(f"step {step} reward {stat.item() / world:.4f} {time.time() - t0:.1f}s", flush=True)
        if step % args.eval_every == 0:
            totals = torch.zeros(2)
            for _ in range(6):
                held = torch.randint(VOCAB, (16, 1))
                seqs = generate(model.module, held)
                answers = [[(s[0] + 2 * k) % VOCAB for k in range(LENGTH)] for s in held.tolist()]
                scores = pool.gather(pool.submit(list(zip(seqs.tolist(), answers))))
                totals += torch.tensor([sum(scores), float(len(scores))])
            dist.all_reduce(totals)
            if rank == 0:
                print(f"step {step} eval {totals[0].item() / totals[1].item():.4f}", flush=True)
    beat.stop.set()
    pool.close()
    dist.destroy_process_group()
