import time

import torch
from torch import nn


class Stage(nn.Module):
    def __init__(self, idx, total, vocab=200, dim=48):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim) if idx == 0 else None
        layer = nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1 if idx else 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, vocab) if idx == total - 1 else None

    def forward(self, x):
        if self.emb is not None:
            x = self.emb(x)
        time.sleep(0.02)
        x = self.layers(x)
        return self.head(x) if self.head is not None else x


def batch(step, n, seq, vocab=200):
    gen = torch.Generator().manual_seed(step)
    ids = torch.randint(0, vocab, (n, seq + 1), generator=gen)
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
