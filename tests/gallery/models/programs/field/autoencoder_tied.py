"""An autoencoder for collaborative filtering whose decoder is the encoder, transposed."""
import torch
import torch.nn.functional as F
from torch import nn


class Decoder(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.weight = encoder.weight
        self.bias = nn.Parameter(torch.zeros(encoder.in_features))

    def forward(self, h):
        return F.linear(h, self.weight.t(), self.bias)


class AutoRec(nn.Module):
    def __init__(self, items=30, hidden=12):
        super().__init__()
        self.encoder = nn.Linear(items, hidden)
        self.decoder = Decoder(self.encoder)

    def forward(self, ratings):
        return self.decoder(torch.sigmoid(self.encoder(ratings)))


def make():
    return AutoRec()


def batch(rows):
    return torch.rand(rows, 30)
