import time

import torch
import torch.nn as nn

from replay import STATE


class Flow(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(STATE, hidden), nn.LeakyReLU(), nn.Linear(hidden, STATE))
        self.log_z = nn.Parameter(torch.zeros(1))

    def loss(self, states):
        out = self.net(states)
        return (self.log_z + out.square().mean(-1) - log_reward(states)).square().mean()


def log_reward(states):
    return -(states - 1.0).abs().mean(-1)


def rollout(flow, n, gen):
    x = torch.randn(n, STATE, generator=gen)
    with torch.no_grad():
        for _ in range(4):
            x = x + 0.1 * flow.net(x) + 0.05 * torch.randn(n, STATE, generator=gen)
            time.sleep(0.02)
    return x, log_reward(x)
