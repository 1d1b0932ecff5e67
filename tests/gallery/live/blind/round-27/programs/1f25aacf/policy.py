import random

import torch
from torch import nn


def make_policy():
    return nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))


class CorridorEnv:
    def __init__(self, seed, length=8):
        self.rng = random.Random(seed)
        self.length = length

    def reset(self):
        self.pos, self.t = self.rng.randrange(1, self.length - 1), 0
        self.goal = self.rng.choice([0, self.length - 1])
        return self._obs()

    def _obs(self):
        return torch.tensor([self.pos / self.length, self.goal / self.length, self.t / 20.0, 1.0])

    def step(self, action):
        self.pos = max(0, min(self.length - 1, self.pos + (1 if action else -1)))
        self.t += 1
        won = self.pos == self.goal
        return self._obs(), float(won), won or self.t >= 20
