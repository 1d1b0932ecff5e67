"""A variational autoencoder: it draws while it trains and takes the mean in evaluation."""

import torch
from torch import nn


class VAE(nn.Module):
    def __init__(self, size=30, hidden=24, latent=6):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(size, hidden), nn.SiLU())
        self.mu, self.logvar = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decode = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, size))

    def forward(self, x):
        h = self.encode(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar) if self.training else mu
        back = self.decode(z)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1).mean()
        return {"loss": nn.functional.mse_loss(back, x) + 1e-3 * kl, "back": back}


def make(latent=6):
    return VAE(latent=latent)


def sample(rows=8):
    return {"x": torch.randn(rows, 30)}
