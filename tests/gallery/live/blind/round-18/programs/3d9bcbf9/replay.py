import random
from collections import deque

import torch


class Corridor:
    """Small partially observed grid; the goal moves after every episode."""

    def __init__(self, n=12, seed=0):
        self.n = n
        self.rng = random.Random(seed)
        self.reset()

    def reset(self):
        self.pos = self.rng.randrange(self.n)
        self.goal = self.rng.randrange(self.n)
        self.t = 0
        return self.obs()

    def obs(self):
        o = torch.zeros(2 * self.n)
        o[self.pos] = 1
        o[self.n + self.goal] = 1
        return o

    def step(self, action):
        self.pos = max(0, min(self.n - 1, self.pos + (1 if action == 1 else -1 if action == 2 else 0)))
        self.t += 1
        done = self.pos == self.goal or self.t >= 40
        return self.obs(), 1.0 if self.pos == self.goal else -0.01, done


class Replay:
    def __init__(self, capacity=6000):
        self.items = deque(maxlen=capacity)

    def add(self, item):
        self.items.append(item)

    def sample(self, n):
        batch = random.sample(self.items, n)
        o, a, r, p, d = zip(*batch)
        return torch.stack(o), torch.tensor(a), torch.tensor(r), torch.stack(p), torch.tensor(d)
