import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.nn.functional import all_to_all_single


class RowShardedEmbedding(nn.Module):
    """Rows are dealt out by `id % world`; ids travel to their owner, vectors travel back."""

    def __init__(self, rows, dim, group):
        super().__init__()
        self.group = group
        self.world, self.rank = dist.get_world_size(group), dist.get_rank(group)
        self.local = nn.Parameter(torch.randn(rows // self.world + 1, dim) * 0.02)

    def forward(self, ids):
        flat = ids.flatten()
        owner = flat % self.world
        order = owner.argsort(stable=True)
        n_send = torch.bincount(owner, minlength=self.world)
        n_recv = torch.empty_like(n_send)
        dist.all_to_all_single(n_recv, n_send, group=self.group)
        send, recv = n_send.tolist(), n_recv.tolist()
        wanted = flat.new_empty(sum(recv))
        dist.all_to_all_single(wanted, flat[order].contiguous(), recv, send, group=self.group)
        rows = self.local[wanted // self.world]
        vectors = all_to_all_single(rows.new_empty(len(flat), rows.shape[1]), rows, send, recv, group=self.group)
        return torch.empty_like(vectors).index_copy(0, order, vectors).view(*ids.shape, -1)
