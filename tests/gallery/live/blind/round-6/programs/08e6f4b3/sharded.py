import torch
import torch.distributed as dist
from torch import nn


class InputDist:
    """Sends every id to the rank that owns its row."""

    def __init__(self, rows, world):
        self.per = (rows + world - 1) // world
        self.group = dist.new_group(backend="gloo")
        self.world = world

    def __call__(self, ids):
        flat = ids.flatten()
        owner = flat // self.per
        order = owner.argsort(stable=True)
        counts = torch.bincount(owner, minlength=self.world)
        recv = torch.empty_like(counts)
        dist.all_to_all_single(recv, counts, group=self.group)
        out = flat.new_empty(int(recv.sum()))
        dist.all_to_all_single(out, flat[order].contiguous(), recv.tolist(), counts.tolist(),
                               group=self.group)
        return {"ids": out, "recv": recv.tolist(), "sent": counts.tolist(), "order": order, "shape": ids.shape}


class ShardedTable(nn.Module):
    def __init__(self, rows, dim, rank, world):
        super().__init__()
        self.rank, self.dim = rank, dim
        self.input_dist = InputDist(rows, world)
        self.weight = nn.Parameter(torch.randn(self.input_dist.per, dim) * 0.05)
        self.lr = 0.05

    def lookup(self, ctx):
        local = ctx["ids"] - self.rank * self.input_dist.per
        rows = self.weight[local].detach()
        out = rows.new_empty(sum(ctx["sent"]), self.dim)
        dist.all_to_all_single(out, rows, ctx["sent"], ctx["recv"])
        emb = torch.empty_like(out)
        emb[ctx["order"]] = out
        return emb.view(*ctx["shape"], self.dim).requires_grad_()

    @torch.no_grad()
    def update(self, ctx, grad):
        g = grad.reshape(-1, self.dim)[ctx["order"]].contiguous()
        out = g.new_empty(len(ctx["ids"]), self.dim)
        dist.all_to_all_single(out, g, ctx["recv"], ctx["sent"])
        self.weight.index_add_(0, ctx["ids"] - self.rank * self.input_dist.per, out, alpha=-self.lr)
