import itertools
import time

import torch
import torch.distributed as dist

from policy import Policy


class Sampler:
    """Keeps a plain copy of the policy and feeds every trainer with fresh sequences."""

    def __init__(self, cfg, transfer_group):
        self.cfg = cfg
        self.group = transfer_group
        self.policy = Policy(cfg.vocab, cfg.dim).eval()
        self.version = 0

    @torch.no_grad()
    def draw(self, n):
        seq = torch.randint(0, self.cfg.vocab, (n, 1))
        for _ in range(self.cfg.length):
            logits = self.policy(seq[:, -1:])[:, -1]
            seq = torch.cat([seq, torch.multinomial(torch.softmax(logits, -1), 1)], 1)
        time.sleep(0.08)
        return seq

    @torch.no_grad()
    def receive_weights(self):
        for p in self.policy.parameters():
            dist.broadcast(p, src=0, group=self.group)
        self.version += 1

    def serve(self):
        for round_ in itertools.count(1):
            for t in range(self.cfg.trainers):
                dist.send(self.draw(self.cfg.prompts), dst=t)
            if round_ % self.cfg.sync_every == 0:
                self.receive_weights()
