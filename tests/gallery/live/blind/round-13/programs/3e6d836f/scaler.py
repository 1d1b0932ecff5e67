import torch
import torch.distributed as dist


class DynamicScaler:
    def __init__(self, init=2.0 ** 10, interval=30):
        self.value, self.interval, self.good, self.skipped = init, interval, 0, 0

    def step(self, params, opt):
        bad = torch.zeros(1)
        for p in params:
            if not torch.isfinite(p.grad).all():
                bad.fill_(1)
                break
        dist.all_reduce(bad, op=dist.ReduceOp.MAX)
        if bad.item():
            self.value = max(1.0, self.value / 2)
            self.good = 0
            self.skipped += 1
            return False
        for p in params:
            p.grad.div_(self.value)
        opt.step()
        self.good += 1
        if self.good == self.interval:
            self.value *= 2
            self.good = 0
        return True
