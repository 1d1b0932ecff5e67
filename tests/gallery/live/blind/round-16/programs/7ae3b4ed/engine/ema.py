import copy
import math

import torch
import torch.distributed as dist


class ModelEMA:
    def __init__(self, model, decay=0.999, tau=500):
        self.ema = copy.deepcopy(model).eval().requires_grad_(False)
        self.updates, self.decay = 0, lambda n: decay * (1 - math.exp(-n / tau))

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        d = self.decay(self.updates)
        src = [p.detach() for p in model.parameters()]
        torch._foreach_lerp_(list(self.ema.parameters()), src, 1 - d)

    @torch.no_grad()
    def sync_buffers(self, model):
        for e, b in zip(self.ema.buffers(), model.buffers()):
            e.copy_(b)
            dist.broadcast(e, 0)
