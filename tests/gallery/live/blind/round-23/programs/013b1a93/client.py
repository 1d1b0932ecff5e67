import time

import torch
from torch import nn


class SiloModel(nn.Module):
    def __init__(self, dim=48, hidden=64, classes=5):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def forward(self, x):
        return self.net(x)


class Silo:
    """Private data of one participant together with its privacy accountant."""

    def __init__(self, cid, n_records, noise=1.1, delta_budget=24.0):
        g = torch.Generator().manual_seed(1000 + cid)
        self.cid = cid
        self.x = torch.randn(n_records, 48, generator=g)
        w = torch.randn(48, 5, generator=torch.Generator().manual_seed(5))
        self.y = (self.x @ w + 0.5 * torch.randn(n_records, 5, generator=g)).argmax(1)
        self.noise = noise
        self.budget = delta_budget
        self.spent = 0.0

    def charge(self, batch_size):
        self.spent += (batch_size / len(self.x)) / self.noise * 4.0

    @property
    def exhausted(self):
        return self.spent >= self.budget

    def local_epoch(self, model, lr, steps, batch_size, pause):
        opt = torch.optim.SGD(model.parameters(), lr=lr)
        total = 0.0
        for _ in range(steps):
            idx = torch.randint(0, len(self.x), (batch_size,))
            loss = nn.functional.cross_entropy(model(self.x[idx]), self.y[idx])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for p in model.parameters():
                p.grad.add_(torch.randn_like(p.grad) * 0.002 * self.noise)
            opt.step()
            self.charge(batch_size)
            total += loss.item()
            time.sleep(pause)
        return total / steps
