import torch
import torch.nn as nn
import torch.nn.functional as F


class ResMLP(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.fc2(F.gelu(self.fc1(self.norm(x))))


def build_stage(i, n, cfg):
    layers = [ResMLP(cfg.dim) for _ in range(cfg.layers_per_stage)]
    if i == 0:
        layers.insert(0, nn.Linear(cfg.features, cfg.dim))
    if i == n - 1:
        layers.append(nn.Linear(cfg.dim, cfg.classes))
    return nn.Sequential(*layers)
