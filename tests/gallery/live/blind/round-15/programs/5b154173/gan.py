import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, z=32, nf=24):
        super().__init__()
        self.fc = nn.Linear(z, 4 * nf * 16)
        self.nf = nf
        self.net = nn.Sequential(
            nn.Upsample(scale_factor=2), nn.Conv2d(4 * nf, 2 * nf, 3, padding=1), nn.LeakyReLU(0.2),
            nn.Upsample(scale_factor=2), nn.Conv2d(2 * nf, nf, 3, padding=1), nn.LeakyReLU(0.2),
            nn.Conv2d(nf, 3, 3, padding=1), nn.Tanh(),
        )

    def forward(self, z):
        return self.net(self.fc(z).view(-1, 4 * self.nf, 4, 4))


class Discriminator(nn.Module):
    def __init__(self, nf=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, nf, 3, padding=1), nn.LeakyReLU(0.2), nn.AvgPool2d(2),
            nn.Conv2d(nf, 2 * nf, 3, padding=1), nn.LeakyReLU(0.2), nn.AvgPool2d(2), nn.Flatten(),
            nn.Linear(2 * nf * 16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Features(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        g = torch.Generator().manual_seed(2)
        self.conv1 = nn.Conv2d(3, 24, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(24, dim, 3, stride=2, padding=1)
        for p in self.parameters():
            p.data = torch.randn(p.shape, generator=g) * 0.1
            p.requires_grad_(False)

    def forward(self, x):
        return torch.relu(self.conv2(torch.relu(self.conv1(x)))).mean((2, 3))
