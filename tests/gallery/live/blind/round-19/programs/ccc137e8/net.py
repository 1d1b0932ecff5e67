import torch
import torch.nn as nn


class ConvNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(32 * 49, 128), nn.ReLU(), nn.Linear(128, classes))

    def forward(self, x):
        return self.head(self.features(x))


_protos = torch.randn(10, 1, 28, 28, generator=torch.Generator().manual_seed(7))


def synthetic_digits(n):
    y = torch.randint(0, 10, (n,))
    return _protos[y] + 0.8 * torch.randn(n, 1, 28, 28), y
