import torch
import torch.nn as nn


class DLRM(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.emb = nn.ModuleList(nn.Embedding(5000, d) for _ in range(6))
        self.bot = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, d))
        self.top = nn.Sequential(nn.Linear(7 * d, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, dense, sparse):
        feats = [self.bot(dense)] + [e(sparse[:, i]) for i, e in enumerate(self.emb)]
        return self.top(torch.cat(feats, 1)).squeeze(1)
