"""DCGAN: both losses of one step from one module."""
import torch
import torch.nn.functional as F
from torch import nn


class Generator(nn.Module):
    def __init__(self, z=8, width=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.ConvTranspose2d(z, width, 4, 1, 0, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(True),
            nn.ConvTranspose2d(width, width // 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width // 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(width // 2, 3, 4, 2, 1),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.net(z[:, :, None, None])


class Discriminator(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1),
            nn.LeakyReLU(0.2, inplace=True),
            nn.utils.parametrizations.spectral_norm(nn.Conv2d(width, width * 2, 4, 2, 1)),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width * 2, 1, 4),
        )

    def forward(self, x):
        return self.net(x).flatten()


class GAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = Generator()
        self.discriminator = Discriminator()

    def forward(self, real, z):
        fake = self.generator(z)
        d_real, d_fake = self.discriminator(real), self.discriminator(fake)
        return {"fake": fake, "loss": F.softplus(-d_real).mean() + F.softplus(d_fake).mean()}


def gan():
    return GAN()


def batch(rows):
    return {"real": torch.rand(rows, 3, 16, 16) * 2 - 1, "z": torch.randn(rows, 8)}
