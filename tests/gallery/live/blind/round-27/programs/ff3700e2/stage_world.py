import random
import time

import torch


class StageWorld:
    """A robot among moving obstacles on a small map."""

    def __init__(self, index):
        self.index = index
        self.rng = random.Random(100 + index)
        self.goal_range = [6.0, 5.0, 3.0][index % 3]

    def reset(self):
        self.pos = torch.zeros(2)
        angle = self.rng.uniform(0, 6.28)
        self.goal = self.goal_range * torch.tensor([angle, 1.0]).sin()
        return self.observe()

    def observe(self):
        return torch.cat([self.goal - self.pos, torch.randn(14) * 0.1])

    def step(self, action):
        time.sleep(0.04)
        to_goal = self.goal - self.pos
        self.pos = self.pos + 0.4 * to_goal / (to_goal.norm() + 1e-6) + 0.05 * action
        dist = (self.goal - self.pos).norm().item()
        return self.observe(), -dist, dist < 0.5
