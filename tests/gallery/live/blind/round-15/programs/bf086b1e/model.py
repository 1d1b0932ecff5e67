import torch
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self, channels=3, actions=5):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(32, 32, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(32, 32, 3, stride=2, padding=1)
        self.fc = nn.Linear(32 * 6 * 6, 256)
        self.critic = nn.Linear(256, 1)
        self.actor = nn.Linear(256, actions)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        x = torch.relu(self.conv3(x))
        x = torch.relu(self.fc(x.flatten(1)))
        return self.critic(x).squeeze(-1), self.actor(x)
