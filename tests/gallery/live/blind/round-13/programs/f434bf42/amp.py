import logging

import torch

log = logging.getLogger("amp")


class LossScaler:
    def __init__(self, init_scale=2.0 ** 16, growth_interval=20, factor=2.0):
        self.scale_value = init_scale
        self.growth_interval = growth_interval
        self.factor = factor
        self.good_steps = 0

    def scale(self, loss):
        return loss * self.scale_value

    def unscale_(self, optimizer):
        inv = 1.0 / self.scale_value
        finite = True
        for p in optimizer.local:
            p.grad.mul_(inv)
            finite = finite and bool(torch.isfinite(p.grad).all())
        return finite

    def step(self, optimizer):
        if not self.unscale_(optimizer):
            self.scale_value /= self.factor
            self.good_steps = 0
            log.info("gradient overflow, skipping step, loss scale %g", self.scale_value)
            return False
        optimizer.step()
        self.good_steps += 1
        if self.good_steps % self.growth_interval == 0:
            self.scale_value *= self.factor
        return True
