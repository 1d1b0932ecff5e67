import time

import torch
import torch.nn as nn


class PointEnv:
    """Move a point towards the origin; four discrete actions."""

    MOVES = torch.tensor([[0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]])

    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.reset()

    def reset(self):
        self.pos = torch.rand(2, generator=self.gen) * 2 - 1
        self.t = 0
        return self.pos.clone()

    def step(self, action):
        self.pos = self.pos + self.MOVES[action]
        self.t += 1
        reward = -self.pos.norm().item()
        return self.pos.clone(), reward, self.t >= 12


class Policy(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 4))

    def forward(self, obs):
        return torch.distributions.Categorical(logits=self.body(obs))


def rollout(policy, env, frame_time=0.008):
    obs, done = env.reset(), False
    observations, actions, rewards = [], [], []
    while not done:
        with torch.no_grad():
            action = policy(obs).sample()
        observations.append(obs)
        actions.append(action)
        obs, reward, done = env.step(action.item())
        rewards.append(reward)
        time.sleep(frame_time)
    return torch.stack(observations), torch.stack(actions), rewards


def discounted(rewards, gamma=0.97):
    out, acc = [], 0.0
    for r in reversed(rewards):
        acc = r + gamma * acc
        out.append(acc)
    return torch.tensor(out[::-1])
