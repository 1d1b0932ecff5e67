import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, out_splits, in_splits, group):
        ctx.args = (in_splits, out_splits, group)
        out = x.new_empty((sum(out_splits),) + x.shape[1:])
        dist.all_to_all_single(out, x.contiguous(), out_splits, in_splits, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        out_splits, in_splits, group = ctx.args
        gx = grad.new_empty((sum(out_splits),) + grad.shape[1:])
        dist.all_to_all_single(gx, grad.contiguous(), out_splits, in_splits, group=group)
        return gx, None, None, None


class GroupedExperts(nn.Module):
    def __init__(self, n_local, dim, hidden):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(n_local, dim, hidden) * dim**-0.5)
        self.w2 = nn.Parameter(torch.randn(n_local, hidden, dim) * hidden**-0.5)

    def forward(self, x, expert_ids):
        outputs, order = [], []
        for e in range(self.w1.shape[0]):
            idx = (expert_ids == e).nonzero().flatten()
            if idx.numel() == 0:
                continue
            outputs.append(F.gelu(x[idx] @ self.w1[e]) @ self.w2[e])
            order.append(idx)
        if not outputs:
            return torch.empty(0, self.w2.shape[-1], dtype=x.dtype)
        out = torch.cat(outputs)
        return out[torch.cat(order).argsort()]


class MoELayer(nn.Module):
    def __init__(self, dim, hidden, n_experts, group):
        super().__init__()
        self.group = group
        self.world = dist.get_world_size(group)
        self.n_local = n_experts // self.world
        self.router = nn.Linear(dim, n_experts, bias=False)
        self.experts = GroupedExperts(self.n_local, dim, hidden)

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        probs = self.router(x).softmax(-1)
        gate, expert = probs.max(-1)
        order = expert.argsort(stable=True)
        dest = expert[order] // self.n_local
        send = torch.bincount(dest, minlength=self.world)
        recv = torch.empty_like(send)
        dist.all_to_all_single(recv, send, group=self.group)
        send, recv = send.tolist(), recv.tolist()

        ids = torch.empty(sum(recv), dtype=torch.long)
        dist.all_to_all_single(ids, expert[order] % self.n_local, recv, send, group=self.group)
        tokens = _AllToAll.apply(x[order], recv, send, self.group)
        y = self.experts(tokens, ids)
        y = _AllToAll.apply(y, send, recv, self.group)
        y = y[order.argsort()] * gate.unsqueeze(-1)
        self.load = torch.bincount(expert, minlength=self.n_local * self.world)
        return y.view(shape)
