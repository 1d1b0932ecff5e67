"""DeepFM over categorical fields."""
import torch
from torch import nn


class DeepFM(nn.Module):
    def __init__(self, fields=(10, 20, 30, 40), dim=6, hidden=16, dropout=0.2):
        super().__init__()
        offsets = torch.tensor([0, *fields[:-1]]).cumsum(0)
        self.register_buffer("offsets", offsets)
        self.linear = nn.Embedding(sum(fields), 1)
        self.embed = nn.Embedding(sum(fields), dim)
        self.bias = nn.Parameter(torch.zeros(1))
        self.mlp = nn.Sequential(
            nn.Linear(len(fields) * dim, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        x = x + self.offsets
        e = self.embed(x)
        square_of_sum = e.sum(1).pow(2)
        sum_of_square = e.pow(2).sum(1)
        fm = 0.5 * (square_of_sum - sum_of_square).sum(1)
        out = self.linear(x).sum((1, 2)) + fm + self.mlp(e.flatten(1)).squeeze(1) + self.bias
        return torch.sigmoid(out)


def deepfm():
    return DeepFM()


def batch(rows):
    return torch.stack([torch.randint(0, n, (rows,)) for n in (10, 20, 30, 40)], 1)
