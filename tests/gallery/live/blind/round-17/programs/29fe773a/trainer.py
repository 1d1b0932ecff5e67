import logging
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from rollout import AsyncRolloutWorker

log = logging.getLogger("trainer")


class Policy(nn.Module):
    def __init__(self, vocab=8, dim=96):
        super().__init__()
        self.embed = nn.Embedding(vocab + 1, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        start = torch.full_like(tokens[:, :1], 8)
        hidden, _ = self.rnn(self.embed(torch.cat([start, tokens[:, :-1]], dim=1)))
        return self.head(hidden)


class Trainer:
    def __init__(self, args, rank, port):
        self.args, self.rank = args, rank
        torch.manual_seed(0)
        self.model = DDP(Policy())
        self.optim = torch.optim.Adam(self.model.parameters(), lr=3e-3)
        self.worker = AsyncRolloutWorker(port) if rank == 0 else None
        self.version = 0
        gen = torch.Generator().manual_seed(rank)
        self.eval_set = torch.randint(0, 8, (args.eval_size, 16), generator=gen)

    def rollout(self):
        box = [self.worker.collect(self.args.groups_per_step) if self.rank == 0 else None]
        dist.broadcast_object_list(box, src=0)
        groups = box[0][self.rank::dist.get_world_size()]
        tokens = torch.tensor([s for g in groups for s in g["samples"]])
        return tokens, min(g["version"] for g in box[0])

    def train_step(self, tokens):
        reward = (tokens >= 5).float().mean(1)
        adv = reward - reward.mean()
        logits = self.model(tokens)
        logp = -F.cross_entropy(logits.flatten(0, 1), tokens.flatten(), reduction="none").view_as(tokens)
        loss = -(adv[:, None] * logp).mean() - 0.01 * logp.mean()
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return loss.item(), reward.mean().item()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        total = torch.zeros(2)
        for chunk in self.eval_set.split(8):
            logits = self.model.module(chunk)
            total[0] += F.cross_entropy(logits.flatten(0, 1), chunk.flatten(), reduction="sum")
            total[1] += chunk.numel()
        dist.all_reduce(total)
        self.model.train()
        return (total[0] / total[1]).item()

    def update_weights(self):
        self.version += 1
        if self.rank == 0:
            bias = self.model.module.head.bias.detach().tolist()
            self.worker.update_weights(self.version, bias)
        dist.barrier()

    def fit(self):
        if self.rank == 0:
            self.worker.start()
        tic = time.time()
        for step in range(1, self.args.steps + 1):
            tokens, version = self.rollout()
            loss, reward = self.train_step(tokens)
            if step % 10 == 0 and self.rank == 0:
                log.info("step %d loss %.4f reward %.3f rollout version %d (%.2fs)",
                         step, loss, reward, version, time.time() - tic)
            if step % self.args.eval_every == 0:
                nll = self.evaluate()
                if self.rank == 0:
                    log.info("step %d eval nll %.4f", step, nll)
            if step % self.args.update_every == 0:
                self.update_weights()
