import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, vocab=2000, dim=64, classes=4):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 128), nn.GELU(), nn.Linear(128, dim))
        self.head = nn.Linear(dim, classes)

    def forward(self, ids):
        h = self.emb(ids)
        h = torch.tanh(h + self.ff(h))
        return self.head(h.mean(1))
