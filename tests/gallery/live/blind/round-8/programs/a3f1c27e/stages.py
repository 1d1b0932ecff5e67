import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        return x + self.ff(self.norm(x))


class Stage(nn.Module):
    def __init__(self, index, count, dim, vocab, depth):
        super().__init__()
        self.first = index == 0
        self.last = index == count - 1
        if self.first:
            self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        if self.last:
            self.head = nn.Linear(dim, vocab)

    def forward(self, x, target=None):
        if self.first:
            x = self.embed(x)
        for blk in self.blocks:
            x = blk(x)
        if self.last:
            logits = self.head(x)
            return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        return x
