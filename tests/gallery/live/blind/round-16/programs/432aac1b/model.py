import math

import torch
import torch.nn as nn


class ResBlock(nn.Module):
    def __init__(self, ch, tdim):
        super().__init__()
        self.conv1 = nn.Conv2d(ch, ch, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(ch)
        self.conv2 = nn.Conv2d(ch, ch, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(ch)
        self.temb = nn.Linear(tdim, ch)

    def forward(self, x, t):
        h = torch.nn.functional.silu(self.norm1(self.conv1(x))) + self.temb(t)[:, :, None, None]
        return x + torch.nn.functional.silu(self.norm2(self.conv2(h)))


class Net(nn.Module):
    def __init__(self, ch, depth=3):
        super().__init__()
        self.ch = ch
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.blocks = nn.ModuleList(ResBlock(ch, ch) for _ in range(depth))
        self.out = nn.Conv2d(ch, 3, 3, padding=1)

    def forward(self, x, t):
        freqs = torch.exp(-math.log(1e4) * torch.arange(self.ch // 2) / (self.ch // 2))
        emb = torch.cat([torch.sin(t[:, None] * 1000 * freqs), torch.cos(t[:, None] * 1000 * freqs)], 1)
        h = self.inp(x)
        for b in self.blocks:
            h = b(h, emb)
        return self.out(h)


class BFN(nn.Module):
    def __init__(self, net, min_variance=1e-3):
        super().__init__()
        self.net = net
        self.min_variance = min_variance

    def forward(self, data):
        t = torch.rand(data.size(0)).clamp(min=1e-3)
        gamma = (1 - self.min_variance ** t)[:, None, None, None]
        mu = gamma * data + (gamma * (1 - gamma)).sqrt() * torch.randn_like(data)
        eps = self.net(mu, t)
        pred = mu / gamma - ((1 - gamma) / gamma).sqrt() * eps
        w = self.min_variance ** (-t)
        return (w * (data - pred.clamp(-1, 1)).pow(2).flatten(1).mean(1)).clamp(max=50).mean()
