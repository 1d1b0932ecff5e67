"""A convolutional variational autoencoder."""
import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self, latent=8, width=12):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 4, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 4, 2, 1), nn.ReLU()
        )
        self.to_mu = nn.Linear(2 * width * 16, latent)
        self.to_logvar = nn.Linear(2 * width * 16, latent)
        self.from_z = nn.Linear(latent, 2 * width * 16)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, 2, 1),
        )
        self.width = width

    def forward(self, x):
        h = self.encoder(x).flatten(1)
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = mu
        if self.training:
            z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        y = F.relu(self.from_z(z)).view(x.shape[0], 2 * self.width, 4, 4)
        recon = self.decoder(y)
        rec = F.binary_cross_entropy_with_logits(recon, x, reduction="none").sum((1, 2, 3)).mean()
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        return {"loss": rec + kl, "recon": recon, "mu": mu, "logvar": logvar}


def vae():
    return VAE()


def digits(rows):
    return torch.rand(rows, 1, 16, 16)
