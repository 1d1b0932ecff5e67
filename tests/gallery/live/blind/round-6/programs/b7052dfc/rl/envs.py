import numpy as np


class WindyPole:
    """Pole balancing with gusts taken from a recorded wind table."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.wind = np.sin(np.arange(900) / 17.0) * (0.2 + 0.1 * (seed % 5))
        self.clock = 60 * (seed % 7)
        self.reset()

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, 4)
        self.t = 0
        return self.state.astype("float32")

    def step(self, action):
        x, v, th, w = self.state
        gust = self.wind[self.clock]
        self.clock += 1
        force = (1.0 if action else -1.0) + gust
        v += 0.02 * force
        w += 0.02 * (9.8 * np.sin(th) - force * np.cos(th))
        self.state = np.array([x + 0.02 * v, v, th + 0.02 * w, w])
        self.t += 1
        done = abs(self.state[2]) > 0.4 or self.t >= 200
        obs = self.reset() if done else self.state.astype("float32")
        return obs, 1.0, done
