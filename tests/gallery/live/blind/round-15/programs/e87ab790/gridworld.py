import numpy as np


class VisualGrid:
    size = 72
    channels = 6

    def __init__(self, seed, max_steps=60):
        self.rng = np.random.default_rng(seed)
        self.max_steps = max_steps
        self.reset()

    def reset(self):
        self.t = 0
        self.pos = self.rng.integers(0, self.size, 2)
        self.goal = self.rng.integers(0, self.size, 2)
        return self._render()

    def _render(self):
        img = np.zeros((self.channels, self.size, self.size), dtype=np.float32)
        y, x = self.pos
        img[0, max(0, y - 3):y + 4, max(0, x - 3):x + 4] = 1.0
        y, x = self.goal
        img[1, max(0, y - 3):y + 4, max(0, x - 3):x + 4] = 1.0
        img[2] = self.t / self.max_steps
        return img

    def step(self, action):
        move = [(0, 6), (0, -6), (6, 0), (-6, 0)][int(action)]
        before = np.abs(self.pos - self.goal).sum()
        self.pos = np.clip(self.pos + move, 0, self.size - 1)
        after = np.abs(self.pos - self.goal).sum()
        self.t += 1
        reward = float(before - after) / self.size
        done = bool(after < 8 or self.t >= self.max_steps)
        return self._render(), reward, done
