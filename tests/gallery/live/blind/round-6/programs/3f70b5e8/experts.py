import torch
from torch import nn


class ExpertMix(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.gate = nn.Linear(dim, experts)
        self.experts = nn.Parameter(torch.zeros(experts, dim, dim))
        self.out = nn.Linear(dim, 1)

    @torch.no_grad()
    def load_expert(self, k, state):
        self.experts[k].copy_(state["w"])

    def forward(self, x):
        g = self.gate(x).softmax(-1)
        h = torch.einsum("bd,kde->bke", x, self.experts).tanh()
        return self.out((g[..., None] * h).sum(1))[:, 0]
