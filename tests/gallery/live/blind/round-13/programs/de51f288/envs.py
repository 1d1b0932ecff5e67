import torch


class PointMass:
    """2-D point mass with random wind; reward is minus the distance to the goal."""

    obs_dim = 8
    n_actions = 5

    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.moves = torch.tensor([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], dtype=torch.float32)
        self.reset()

    def reset(self):
        self.pos = torch.randn(2, generator=self.gen)
        self.vel = torch.zeros(2)
        self.goal = torch.randn(2, generator=self.gen)
        return self.obs()

    def obs(self):
        return torch.cat([self.pos, self.vel, self.goal, self.goal - self.pos])

    def step(self, action):
        wind = 0.1 * torch.randn(2, generator=self.gen)
        self.vel = 0.8 * self.vel + 0.2 * self.moves[action] + wind
        self.pos = self.pos + 0.1 * self.vel
        return self.obs(), -float((self.goal - self.pos).norm())
