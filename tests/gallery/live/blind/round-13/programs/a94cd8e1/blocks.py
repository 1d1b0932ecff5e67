import torch
import torch.nn as nn
import torch.nn.functional as F


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Mixer(nn.Module):
    """Causal depthwise token mixing followed by a gated feed-forward."""

    def __init__(self, dim, hidden, kernel=5):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.kernel = kernel
        self.conv = nn.Conv1d(dim, dim, kernel, groups=dim)
        self.ffn = FeedForward(dim, hidden)

    def forward(self, x):
        h = F.pad(self.n1(x).transpose(1, 2), (self.kernel - 1, 0))
        x = x + self.conv(h).transpose(1, 2)
        return x + self.ffn(self.n2(x))


class LM(nn.Module):
    def __init__(self, vocab=128, dim=64, hidden=256, depth=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Mixer(dim, hidden) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        x = self.emb(ids)
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x))
