import torch
from torch import nn


class BowClassifier(nn.Module):
    def __init__(self, vocab=400, dim=96, hidden=128):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.ff = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Dropout(0.1), nn.Linear(hidden, 2))

    def forward(self, tokens):
        return self.ff(self.embed(tokens).mean(1))
