import torch
import torch.distributed as dist


class ShardedOptimizer:
    def __init__(self, params, opt_cls, **defaults):
        self.params = [p for p in params if p.requires_grad]
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        load = [0] * self.world
        self.owner = []
        for p in self.params:
            dst = load.index(min(load))
            load[dst] += p.numel()
            self.owner.append(dst)
        self.local = [p for p, o in zip(self.params, self.owner) if o == self.rank]
        self.opt = opt_cls(self.local, **defaults)

    def reduce_gradients(self, dtype=torch.float16):
        for p, dst in zip(self.params, self.owner):
            g = p.grad.to(dtype).div_(self.world)
            dist.reduce(g, dst=dst)
            p.grad = g.float() if dst == self.rank else None

    def sync_params(self):
        for p, src in zip(self.params, self.owner):
            dist.broadcast(p.data, src=src)

    def step(self):
        self.opt.step()
        self.sync_params()

    def zero_grad(self):
        for p in self.params:
            p.grad = None
