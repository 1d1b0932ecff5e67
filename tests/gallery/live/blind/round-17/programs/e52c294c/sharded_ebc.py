import torch
import torch.distributed as dist
import torch.nn as nn


class _PooledAllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, in_splits, out_splits):
        ctx.splits = (in_splits, out_splits)
        out = x.new_empty(sum(out_splits))
        dist.all_to_all_single(out, x.contiguous(), out_splits, in_splits)
        return out

    @staticmethod
    def backward(ctx, grad):
        in_splits, out_splits = ctx.splits
        out = grad.new_empty(sum(in_splits))
        dist.all_to_all_single(out, grad.contiguous(), in_splits, out_splits)
        return out, None, None


class ShardedEmbeddingBagCollection(nn.Module):
    """Table-wise sharded pooled embeddings: ids travel to the owner, pooled vectors come back."""

    def __init__(self, tables, plan, rank, world_size):
        super().__init__()
        self.rank, self.world = rank, world_size
        self.order = [[t for t in tables if plan[t.name] == r] for r in range(world_size)]
        self.local = self.order[rank]
        self.bags = nn.ModuleDict({t.name: nn.EmbeddingBag(t.rows, t.dim, mode="sum", sparse=True)
                                   for t in self.local})

    def forward(self, ids):
        batch = next(iter(ids.values())).size(0)
        send = torch.cat([ids[t.name].flatten() for owner in self.order for t in owner])
        in_splits = [sum(batch * t.pooling for t in owner) for owner in self.order]
        mine = sum(batch * t.pooling for t in self.local)
        recv = send.new_empty(mine * self.world)
        dist.all_to_all_single(recv, send, [mine] * self.world, in_splits)

        per_source = recv.split(mine)
        pooled = []
        for src in per_source:
            for t, chunk in zip(self.local, src.split([batch * t.pooling for t in self.local])):
                pooled.append(self.bags[t.name](chunk.view(batch, t.pooling)))
        n, dim = len(self.local), (self.local[0].dim)
        flat = torch.stack(pooled).view(self.world, n, batch, dim).flatten()
        out_splits = [len(owner) * batch * dim for owner in self.order]
        out = _PooledAllToAll.apply(flat, [n * batch * dim] * self.world, out_splits)
        parts = [p.view(-1, batch, dim) for p in out.split(out_splits)]
        return torch.cat(parts).transpose(0, 1).flatten(1)
