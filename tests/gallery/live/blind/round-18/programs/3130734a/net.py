import torch
from torch import nn


class ResMLP(nn.Module):
    def __init__(self, features=40, width=128, blocks=8):
        super().__init__()
        self.inp = nn.Linear(features, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width * 2), nn.GELU(), nn.Linear(width * 2, width)) for _ in range(blocks)
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = self.inp(x)
        for b in self.blocks:
            h = h + b(h)
        return self.out(h).squeeze(-1)


@torch.no_grad()
def layer_stats(model):
    out = {}
    for name, p in model.named_parameters():
        for kind, t in (("weight", p), ("grad", p.grad)):
            if t is not None:
                out[f"{kind}_norm/{name}"] = t.norm().item()
                out[f"{kind}_mean/{name}"] = t.mean().item()
                out[f"{kind}_absmax/{name}"] = t.abs().max().item()
    return out
