"""Shampoo-style optimizer; the preconditioners of a group are spread over the ranks."""
import torch
import torch.distributed as dist


def matrix_inv_root(mat, order=4, eps=1e-6):
    vals, vecs = torch.linalg.eigh(mat + eps * torch.eye(mat.shape[0]))
    return vecs @ torch.diag(vals.clamp(min=eps).pow(-1.0 / order)) @ vecs.T


class Distributor:
    """Assigns the tensors of one parameter group to ranks and exchanges their updates."""

    def __init__(self, params, group):
        self.params, self.group = params, group
        self.rank, world = dist.get_rank(group), dist.get_world_size(group)
        loads, self.owner = [0] * world, {}
        for i in sorted(range(len(params)), key=lambda i: -params[i].numel()):
            self.owner[i] = loads.index(min(loads))
            loads[self.owner[i]] += params[i].numel()
        self.buffer_size = max(loads)

    def local_indices(self):
        return [i for i, r in self.owner.items() if r == self.rank]

    def update_params(self, updates, lr):
        send = torch.zeros(self.buffer_size)
        offset = 0
        for i in self.local_indices():
            send[offset:offset + updates[i].numel()] = updates[i].flatten()
            offset += updates[i].numel()
        world = dist.get_world_size(self.group)
        recv = torch.empty(world * self.buffer_size)
        dist.all_gather_into_tensor(recv, send, group=self.group)
        offsets = [r * self.buffer_size for r in range(world)]
        for i, r in self.owner.items():
            n = self.params[i].numel()
            self.params[i].data.add_(recv[offsets[r]:offsets[r] + n].view_as(self.params[i]), alpha=-lr)
            offsets[r] += n


class ShardedShampoo(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, beta=0.95, precondition_every=10, group=None):
        super().__init__(params, dict(lr=lr, beta=beta, every=precondition_every))
        self.dist_group = group
        self.distributors, self.steps = {}, 0

    def _distributor(self, idx, group):
        if idx not in self.distributors:
            self.distributors[idx] = Distributor(group["params"], self.dist_group)
        return self.distributors[idx]

    def _precondition(self, p, group):
        state, g = self.state[p], p.grad.view(p.shape[0], -1)
        if "L" not in state:
            state["L"], state["inv"] = torch.zeros(g.shape[0], g.shape[0]), None
        state["L"].mul_(group["beta"]).add_(g @ g.T, alpha=1 - group["beta"])
        if state["inv"] is None or self.steps % group["every"] == 0:
            state["inv"] = matrix_inv_root(state["L"])
        return (state["inv"] @ g).view_as(p)

    @torch.no_grad()
    def step(self):
        for idx, group in enumerate(self.param_groups):
            distributor = self._distributor(idx, group)
            local = [i for i in distributor.local_indices() if group["params"][i].grad is not None]
            if not local:
                continue
            updates = {i: self._precondition(group["params"][i], group) for i in local}
            distributor.update_params(updates, group["lr"])
        self.steps += 1
