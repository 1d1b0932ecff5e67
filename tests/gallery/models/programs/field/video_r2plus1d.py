"""R(2+1)D: clips of video, space and time apart."""
import torch
from torch import nn


class Conv2Plus1D(nn.Sequential):
    def __init__(self, cin, cout, stride=1):
        mid = cout
        super().__init__(
            nn.Conv3d(cin, mid, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False),
            nn.BatchNorm3d(mid),
            nn.ReLU(inplace=True),
            nn.Conv3d(mid, cout, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False),
        )


class Block(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Sequential(Conv2Plus1D(cin, cout, stride), nn.BatchNorm3d(cout), nn.ReLU(True))
        self.conv2 = nn.Sequential(Conv2Plus1D(cout, cout), nn.BatchNorm3d(cout))
        self.down = None
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv3d(cin, cout, 1, stride, bias=False), nn.BatchNorm3d(cout))

    def forward(self, x):
        res = x if self.down is None else self.down(x)
        return torch.relu(self.conv2(self.conv1(x)) + res)


class VideoNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv3d(3, 12, (1, 7, 7), (1, 2, 2), (0, 3, 3), bias=False),
            nn.BatchNorm3d(12),
            nn.ReLU(inplace=True),
            nn.Conv3d(12, 16, (3, 1, 1), padding=(1, 0, 0), bias=False),
            nn.BatchNorm3d(16),
            nn.ReLU(inplace=True),
        )
        self.layer1 = Block(16, 16)
        self.layer2 = Block(16, 32, 2)
        self.fc = nn.Linear(32, classes)

    def forward(self, video):
        x = self.layer2(self.layer1(self.stem(video)))
        x = x.mean((2, 3, 4))
        return self.fc(x)


def make():
    return VideoNet()


def clips(rows):
    return {"video": torch.randn(rows, 3, 8, 32, 32)}
