import torch
from torch import nn


class HashEncoder(nn.Module):
    """Frozen text encoder used for pre-computed sentence features."""

    def __init__(self, buckets=20000, dim=256, seed=3):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.buckets = buckets
        self.table = nn.Parameter(torch.randn(buckets, dim, generator=g) * 0.1, requires_grad=False)
        self.mix = nn.Parameter(torch.randn(dim, dim, generator=g) * dim ** -0.5, requires_grad=False)

    @torch.no_grad()
    def forward(self, ids, mask):
        h = torch.tanh(self.table[ids] @ self.mix)
        m = mask.unsqueeze(-1)
        return (h * m).sum(1) / m.sum(1).clamp(min=1)


def tokenize(text, buckets, max_len=64):
    ids = [(hash_word(w) % buckets) for w in text.split()][:max_len]
    return ids + [0] * (max_len - len(ids)), [1.0] * len(ids) + [0.0] * (max_len - len(ids))


def hash_word(w):
    h = 2166136261
    for c in w.encode():
        h = ((h ^ c) * 16777619) & 0xFFFFFFFF
    return h


class Featurizer:
    def __init__(self, encoder):
        self.encoder = encoder

    def __call__(self, batch):
        pairs = [tokenize(t, self.encoder.buckets) for t in batch["text"]]
        ids = torch.tensor([p[0] for p in pairs])
        mask = torch.tensor([p[1] for p in pairs])
        return {"features": self.encoder(ids, mask).tolist()}
