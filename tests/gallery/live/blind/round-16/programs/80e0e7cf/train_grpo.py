import argparse
import copy
import logging
import os
import time
import zlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from data_source import PromptBuffer
from rollout import AsyncRolloutWorker, collect_batch

VOCAB, DIM, LENGTH = 256, 96, 12


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.rnn = nn.GRU(DIM, DIM, batch_first=True)
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, tokens):
        h, _ = self.rnn(self.emb(tokens))
        return self.head(h)


class Sampler:
    """Samples completions from a snapshot of the policy."""

    def __init__(self, policy):
        self.policy = copy.deepcopy(policy).eval()
        self.vocab = VOCAB

    def load(self, state):
        self.policy.load_state_dict(state)

    @torch.no_grad()
    def __call__(self, prompt, n):
        start = zlib.crc32(prompt.encode()) % VOCAB
        seqs = torch.full((n, 1), start, dtype=torch.long)
        for _ in range(LENGTH - 1):
            logits = self.policy(seqs[:, -4:])[:, -1]
            nxt = torch.multinomial(logits.softmax(-1), 1)
            seqs = torch.cat([seqs, nxt], dim=1)
        return seqs


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--run-dir", required=True)
    p.add_argument("--steps", type=int, default=20000)
    p.add_argument("--rollout-batch-size", type=int, default=6)
    p.add_argument("--n-samples", type=int, default=4)
    p.add_argument("--sync-weights-every", type=int, default=10)
    args = p.parse_args()

    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(100 + rank)

    policy = DDP(Policy())
    opt = torch.optim.AdamW(policy.parameters(), lr=3e-4)
    buffer = PromptBuffer(os.path.join(args.run_dir, "prompts", f"part-{rank:05d}.jsonl"))
    sampler = Sampler(policy.module)
    worker = AsyncRolloutWorker(buffer, sampler, args.n_samples)
    worker.start()
    t0 = time.time()
    for step in range(args.steps):
        seqs, rewards = collect_batch(worker, args.rollout_batch_size)
        adv = rewards - rewards.mean(dim=1, keepdim=True)
        adv = adv / (rewards.std(dim=1, keepdim=True) + 1e-4)
        flat = seqs.flatten(0, 1)
        logits = policy(flat[:, :-1])
        logp = -F.cross_entropy(logits.transpose(1, 2), flat[:, 1:], reduction="none")
        loss = -(adv.flatten()[:, None] * logp).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt.step()
        if (step + 1) % args.sync_weights_every == 0:
            sampler.load(policy.module.state_dict())
            stat = rewards.mean().detach()
            dist.all_reduce(stat)
            if rank == 0:
                print(f"step {step + 1} reward {stat.item() / dist.get_world_size():.4f} "
                      f"loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
    worker.stop()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
