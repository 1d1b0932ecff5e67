import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class Gated(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.gate, self.up = nn.Linear(dim, hidden), nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Ranker(nn.Module):
    def __init__(self, words=3000, dim=128, hidden=320, depth=3):
        super().__init__()
        self.words = nn.EmbeddingBag(words, dim, mode="mean")
        self.layers = nn.ModuleList(Gated(dim, hidden) for _ in range(depth))
        self.score = nn.Linear(dim, 1)

    def forward(self, ids, offsets):
        x = self.words(ids, offsets)
        for layer in self.layers:
            x = layer(x)
        return self.score(x)


def parallelize(model, mesh):
    for layer in model.layers:
        parallelize_module(layer, mesh["tp"], {"gate": ColwiseParallel(), "up": ColwiseParallel(),
                                               "down": RowwiseParallel()})
        fully_shard(layer, mesh=mesh["dp"])
    return fully_shard(model, mesh=mesh["dp"])
