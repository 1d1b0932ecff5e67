import torch
import torch.distributed as dist
import torch.nn as nn


class ShardedLinear(nn.Module):
    """A linear layer whose weight lives in equal parts on the ranks and is collected for the forward pass."""

    def __init__(self, dim, group):
        super().__init__()
        self.dim, self.group, self.world = dim, group, dist.get_world_size(group)
        full = torch.empty(dim, dim)
        nn.init.xavier_uniform_(full)
        self.shard = nn.Parameter(full.view(self.world, -1)[dist.get_rank(group)].clone())

    def forward(self, x):
        full = torch.empty(self.dim * self.dim)
        dist.all_gather_into_tensor(full, self.shard.detach(), group=self.group)
        full.requires_grad_(True)
        self.full = full
        return x @ full.view(self.dim, self.dim)


def partition_gradients(model, group):
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    for m in model.modules():
        if isinstance(m, ShardedLinear):
            g = m.full.grad if getattr(m, "full", None) is not None and m.full.grad is not None \
                else torch.zeros(m.dim * m.dim)
            dist.all_reduce(g, group=group)
            m.shard.grad = g.view(world, -1)[rank] / world
            m.full = None
