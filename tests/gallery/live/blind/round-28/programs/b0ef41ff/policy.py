import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.body = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        h = self.embed(ids)
        return self.head(h + self.body(h))


def token_losses(policy, seq):
    logits = policy(seq[:, :-1])
    return nn.functional.cross_entropy(logits.transpose(1, 2), seq[:, 1:], reduction="none")


def rewards(seq):
    return ((seq[:, 1:] - seq[:, :-1]) % 4 == 1).float().mean(1)
