import torch
import torch.nn as nn


class VAE(nn.Module):
    def __init__(self, d=256, h=200, z=12):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, h), nn.ReLU(), nn.Linear(h, d))

    def forward(self, x):
        mu, lv = self.enc(x).chunk(2, -1)
        rec = self.dec(mu + torch.randn_like(mu) * (0.5 * lv).exp())
        kl = -0.5 * (1 + lv - mu ** 2 - lv.exp()).sum(-1)
        return (((rec - x) ** 2).sum(-1) + kl).mean()


def digits(seed, n=64):
    g = torch.Generator().manual_seed(seed)
    base = torch.randn(10, 256, generator=torch.Generator().manual_seed(0))
    return base[torch.randint(0, 10, (n,), generator=g)] + 0.2 * torch.randn(n, 256, generator=g)
