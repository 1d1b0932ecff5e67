import numpy as np


class Balance:
    """Keep a noisy point near the origin."""

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


class Corridor(Balance):
    """Reach the far end; the corridor grows with every promotion."""

    per_level = 8

    def __init__(self, seed):
        super().__init__(seed)
        self.episodes, self.length = 0, 64

    @property
    def limit(self):
        return self.length

    def reset(self):
        if self.episodes and self.episodes % self.per_level == 0 and self.length < 4096:
            self.length *= 4
        self.episodes += 1
        return super().reset()


TASKS = {"balance": Balance, "corridor": Corridor}
