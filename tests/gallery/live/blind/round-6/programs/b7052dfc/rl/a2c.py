import numpy as np
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, obs=4, acts=2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.pi, self.v = nn.Linear(64, acts), nn.Linear(64, 1)

    def forward(self, x):
        h = self.body(x)
        return self.pi(h), self.v(h)[..., 0]


class Rollout:
    def __init__(self, env, policy, steps, gamma=0.97):
        self.env, self.policy, self.steps, self.gamma = env, policy, steps, gamma
        self.obs = env.reset()

    @torch.no_grad()
    def collect(self):
        O, A, R, D = [], [], [], []
        for _ in range(self.steps):
            o = torch.from_numpy(self.obs)
            a = torch.distributions.Categorical(logits=self.policy(o)[0]).sample()
            O.append(o)
            A.append(a)
            self.obs, r, d = self.env.step(a.numpy())
            R.append(torch.from_numpy(r))
            D.append(torch.from_numpy(d.astype("float32")))
        ret = self.policy(torch.from_numpy(self.obs))[1]
        out = []
        for r, d in zip(reversed(R), reversed(D)):
            ret = r + self.gamma * ret * (1 - d)
            out.append(ret)
        return torch.stack(O), torch.stack(A), torch.stack(out[::-1])
