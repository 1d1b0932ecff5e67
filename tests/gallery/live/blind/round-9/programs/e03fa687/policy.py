import torch
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self, obs=24, act=6, width=48, depth=6):
        super().__init__()
        layers, d = [], obs
        for _ in range(depth):
            layers += [nn.Linear(d, width), nn.LayerNorm(width), nn.Tanh()]
            d = width
        self.trunk = nn.Sequential(*layers)
        self.pi, self.v = nn.Linear(width, act), nn.Linear(width, 1)

    def forward(self, x):
        h = self.trunk(x)
        return torch.distributions.Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)
