import numpy as np


class BallArena:
    def __init__(self, seed, obs_dim=48):
        self.rng = np.random.default_rng(seed)
        self.proj = np.random.default_rng(0).normal(size=(8, obs_dim)).astype(np.float32) * 0.5
        self.reset()

    def reset(self):
        self.x = self.rng.uniform(-1, 1, 4)
        self.v = np.zeros(4)
        self.t = 0
        self.limit = int(self.rng.integers(20, 90))
        return self.observe()

    def observe(self):
        s = np.concatenate([self.x, self.v]).astype(np.float32)
        return np.tanh(s @ self.proj)

    def step(self, action):
        force = np.zeros(4)
        force[action // 2] = 0.4 if action % 2 else -0.4
        for _ in range(10):
            gap = self.x[:, None] - self.x[None]
            rep = (gap / (np.abs(gap) ** 2 + 0.4)).sum(1)
            self.v = 0.985 * self.v + 0.01 * (force + 0.1 * rep - 0.5 * self.x)
            self.x = np.clip(self.x + 0.05 * self.v, -2, 2)
        self.t += 1
        return self.observe(), float(-np.abs(self.x).mean()), self.t >= self.limit
