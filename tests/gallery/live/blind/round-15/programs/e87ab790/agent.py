import torch
from torch import nn

from gridworld import VisualGrid


class ActorCritic(nn.Module):
    def __init__(self, n_actions=4):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(VisualGrid.channels, 8, 8, stride=4), nn.ReLU(),
            nn.Conv2d(8, 16, 4, stride=2), nn.ReLU(), nn.Flatten(),
        )
        with torch.no_grad():
            n = self.conv(torch.zeros(1, VisualGrid.channels, VisualGrid.size, VisualGrid.size)).shape[1]
        self.fc = nn.Sequential(nn.Linear(n, 64), nn.ReLU())
        self.pi = nn.Linear(64, n_actions)
        self.v = nn.Linear(64, 1)

    def forward(self, obs):
        h = self.fc(self.conv(obs))
        return self.pi(h), self.v(h).squeeze(-1)

    @torch.no_grad()
    def act(self, obs):
        logits, value = self(obs)
        dist = torch.distributions.Categorical(logits=logits)
        action = dist.sample()
        return action, dist.log_prob(action), value
