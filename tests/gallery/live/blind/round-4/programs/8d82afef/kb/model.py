import torch.nn as nn


class TransE(nn.Module):
    def __init__(self, ents, rels, d=64):
        super().__init__()
        self.e, self.r = nn.Embedding(ents, d), nn.Embedding(rels, d)

    def forward(self, h, r, t, n):
        q = self.e(h) + self.r(r)
        pos = (q - self.e(t)).norm(dim=-1)
        neg = (q - self.e(n)).norm(dim=-1)
        return (1 + pos - neg).clamp(min=0).mean()
