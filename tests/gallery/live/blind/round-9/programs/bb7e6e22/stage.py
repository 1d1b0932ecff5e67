import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, d, heads=4):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class Stage(nn.Module):
    def __init__(self, index, count, vocab, d, depth):
        super().__init__()
        self.first, self.last = index == 0, index == count - 1
        if self.first:
            self.embed = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(depth))
        if self.last:
            self.head = nn.Linear(d, vocab)

    def forward(self, x):
        if self.first:
            x = self.embed(x)
        for b in self.blocks:
            x = b(x)
        return self.head(x) if self.last else x
