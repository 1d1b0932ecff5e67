import torch
from torch.distributed.tensor import DTensor


def local(t):
    return t.to_local() if isinstance(t, DTensor) else t


class ShardedEMA:
    """Running average of the own shard; the whole weights are put together only for saving."""

    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = {n: local(p.detach()).clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for n, p in model.named_parameters():
            self.shadow[n].lerp_(local(p.detach()), 1 - self.decay)

    @torch.no_grad()
    def swap(self, model):
        for n, p in model.named_parameters():
            cur = local(p.detach())
            tmp = cur.clone()
            cur.copy_(self.shadow[n])
            self.shadow[n].copy_(tmp)

    @torch.no_grad()
    def full(self, model):
        out = {}
        for n, p in model.named_parameters():
            d = p.detach()
            whole = DTensor.from_local(self.shadow[n], d.device_mesh, d.placements, shape=d.shape, stride=d.stride())
            out[n] = whole.full_tensor()
        return out
