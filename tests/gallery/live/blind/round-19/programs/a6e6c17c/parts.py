import torch
from torch import nn


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mix = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        x = x + self.mix(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp(self.n2(x))


class Part(nn.Module):
    def __init__(self, index, count, tokens=36, dim=128, blocks=2, patch=48, classes=30):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(patch, 192), nn.GELU(), nn.Linear(192, dim)) if index == 0 else None
        self.blocks = nn.Sequential(*(MixerBlock(tokens, dim) for _ in range(blocks)))
        self.head = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, classes)) if index == count - 1 else None

    def forward(self, x):
        if self.stem is not None:
            x = self.stem(x)
        x = self.blocks(x)
        return self.head(x).mean(1) if self.head is not None else x
