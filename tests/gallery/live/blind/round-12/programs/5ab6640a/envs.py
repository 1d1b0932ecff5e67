import numpy as np


class PointMass:
    limit = 96

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.t, self.s = 0, self.rng.normal(0, 0.1, 8)
        return self.s

    def step(self, a):
        self.t += 1
        self.s = 0.95 * self.s + 0.1 * (a - 1) + self.rng.normal(0, 0.05, 8)
        return self.s, float(-np.abs(self.s).mean()), self.t >= self.limit
