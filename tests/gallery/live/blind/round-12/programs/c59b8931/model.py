import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class MLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Net(nn.Module):
    def __init__(self, dim=128, hidden=256, depth=3):
        super().__init__()
        self.inp = nn.Linear(64, dim)
        self.layers = nn.ModuleList(MLP(dim, hidden) for _ in range(depth))
        self.out = nn.Linear(dim, 10)

    def forward(self, x):
        x = self.inp(x)
        for layer in self.layers:
            x = x + layer(F.layer_norm(x, x.shape[-1:]))
        return self.out(x)


def shard(model, tp_mesh):
    for layer in model.layers:
        parallelize_module(layer, tp_mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return model
