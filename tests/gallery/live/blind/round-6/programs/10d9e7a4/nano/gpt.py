import torch
from torch import nn


class MiniGPT(nn.Module):
    def __init__(self, vocab=257, d=48, T=256):
        super().__init__()
        self.wte = nn.Embedding(vocab, d)
        self.wpe = nn.Embedding(T, d)
        self.attn = nn.MultiheadAttention(d, 2, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))
        self.head = nn.Linear(d, vocab)
        self.register_buffer("mask", torch.triu(torch.ones(T, T, dtype=torch.bool), 1))

    def forward(self, x):
        h = self.wte(x) + self.wpe.weight[: x.size(1)]
        h = h + self.attn(h, h, h, attn_mask=self.mask, need_weights=False)[0]
        return self.head(h + self.ff(h))
