import torch
from torch import nn


class ParallelMLP(nn.Module):
    def __init__(self, d, mult=4):
        super().__init__()
        self.up, self.down = nn.Linear(d, mult * d), nn.Linear(mult * d, d)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = ParallelMLP(d)

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).chunk(3, -1)
        x = x + self.proj(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    def __init__(self, vocab=512, d=96, layers=4):
        super().__init__()
        self.wte = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(layers))
        self.head = nn.Linear(d, vocab)

    def forward(self, x):
        h = self.wte(x)
        for b in self.blocks:
            h = b(h)
        return self.head(h)
