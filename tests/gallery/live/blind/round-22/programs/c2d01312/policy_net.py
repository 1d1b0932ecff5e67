import torch
import torch.nn as nn
from torch.distributed.fsdp import fully_shard


class ActionTransformer(nn.Module):
    def __init__(self, obs=24, act=6, dim=32, depth=2, chunk=8):
        super().__init__()
        self.obs_proj = nn.Linear(obs, dim)
        self.queries = nn.Parameter(torch.randn(chunk, dim) * 0.02)
        self.layers = nn.ModuleList(
            nn.TransformerDecoderLayer(dim, 2, 64, dropout=0.0, batch_first=True) for _ in range(depth)
        )
        self.head = nn.Linear(dim, act)

    def forward(self, obs):
        memory = self.obs_proj(obs)
        h = self.queries.expand(obs.shape[0], -1, -1)
        for layer in self.layers:
            h = layer(h, memory)
        return self.head(h)


def shard(model, mesh):
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model
