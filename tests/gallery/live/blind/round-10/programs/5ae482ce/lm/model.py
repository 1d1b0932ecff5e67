import torch
import torch.nn as nn


class Mixer(nn.Module):
    def __init__(self, dim, ctx):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.time = nn.Conv1d(dim, dim, 5, groups=dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = nn.functional.pad(self.n1(x).transpose(1, 2), (4, 0))
        x = x + self.time(h).transpose(1, 2)
        return x + self.ff(self.n2(x))


class MixerLM(nn.Module):
    def __init__(self, vocab=128, dim=64, depth=3, ctx=48):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(Mixer(dim, ctx) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
