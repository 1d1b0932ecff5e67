import torch
from torch import nn


class SentenceEncoder(nn.Module):
    def __init__(self, vocab=2000, d=192, layers=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        layer = nn.TransformerEncoderLayer(d, 4, 4 * d, batch_first=True, dropout=0.0)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids):
        return nn.functional.normalize(self.enc(self.emb(ids)).mean(1), dim=-1)


class MultipleNegatives(nn.Module):
    def __init__(self, encoder, scale=20.0):
        super().__init__()
        self.encoder, self.scale = encoder, scale

    def forward(self, a, b):
        s = self.encoder(a) @ self.encoder(b).T * self.scale
        return nn.functional.cross_entropy(s, torch.arange(len(s)))
