import torch
import torch.nn as nn


class RankNet(nn.Module):
    def __init__(self, fields=12, vocab=400, dim=16):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, dim, mode="sum")
        self.dense = nn.Linear(fields, dim)
        self.top = nn.Sequential(nn.Linear(2 * dim, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, dense, sparse):
        return self.top(torch.cat([self.dense(dense), self.emb(sparse)], 1)).squeeze(1)
