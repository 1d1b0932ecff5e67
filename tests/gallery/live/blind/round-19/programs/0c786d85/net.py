import torch
from torch import nn


class ConvNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.classifier = nn.Linear(64, classes)

    def forward(self, x):
        return self.classifier(self.features(x))


class Images(torch.utils.data.Dataset):
    def __init__(self, size, seed):
        gen = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(10, (size,), generator=gen)
        self.base = torch.randn(10, 3, 24, 24, generator=torch.Generator().manual_seed(0))
        self.noise_seed = seed

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(self.noise_seed * 100003 + i)
        y = self.labels[i]
        return self.base[y] + 1.5 * torch.randn(3, 24, 24, generator=gen), y
