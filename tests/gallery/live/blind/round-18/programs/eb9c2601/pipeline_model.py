import torch
import torch.nn as nn


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class StageModule(nn.Module):
    def __init__(self, idx, num_stages, vocab, dim, depth):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim) if idx == 0 else None
        self.layers = nn.Sequential(*[Layer(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, vocab) if idx == num_stages - 1 else None

    def forward(self, x):
        if self.embed is not None:
            x = self.embed(x)
        x = self.layers(x)
        return self.head(x) if self.head is not None else x
