import time

import torch
from torch import nn

from ring_p2p import ring_attention


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.q = nn.Linear(dim, dim)
        self.kv = nn.Linear(dim, 2 * dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, comm=None):
        h = self.norm(x)
        q, kv = self.q(h), self.kv(h)
        if comm is None:
            k, v = kv.chunk(2, dim=-1)
            a = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v
        else:
            a = ring_attention(q, kv, comm)
        time.sleep(0.03)
        x = x + a
        return x + self.mlp(x)


class TinyLM(nn.Module):
    def __init__(self, vocab=256, dim=48, depth=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids, comm=None):
        x = self.emb(ids)
        for block in self.blocks:
            x = block(x, comm)
        return self.head(x)
