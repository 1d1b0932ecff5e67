import torch
import torch.nn as nn
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class MLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class Forecaster(nn.Module):
    def __init__(self, channels=16, dim=32, depth=2):
        super().__init__()
        self.inp = nn.Linear(channels, dim)
        self.blocks = nn.ModuleList(MLP(dim, 4 * dim) for _ in range(depth))
        self.out = nn.Linear(dim, channels)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)

    supported_outputs = {"mae", "rmse", "bias", "spread_hist", "rank_hist", "energy_spectrum"}


def parallelize(model, tp_mesh):
    for block in model.blocks:
        parallelize_module(block, tp_mesh, {"fc1": ColwiseParallel(), "fc2": RowwiseParallel()})
    return model
