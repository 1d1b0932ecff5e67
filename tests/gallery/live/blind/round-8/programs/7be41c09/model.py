import torch
from torch import nn
import torch.nn.functional as F


class SparseCoder(nn.Module):
    def __init__(self, d_in, width, k):
        super().__init__()
        self.k = k
        self.encoder = nn.Linear(d_in, width)
        self.decoder = nn.Linear(width, d_in, bias=False)
        self.b_dec = nn.Parameter(torch.zeros(d_in))

    def forward(self, x):
        pre = F.relu(self.encoder(x - self.b_dec))
        top = pre.topk(self.k, dim=-1)
        acts = torch.zeros_like(pre).scatter(-1, top.indices, top.values)
        out = self.decoder(acts) + self.b_dec
        fvu = (out - x).pow(2).sum() / (x - x.mean(0)).pow(2).sum()
        return out, fvu
