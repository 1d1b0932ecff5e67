"""ShuffleNet V2."""
import torch
from torch import nn


def channel_shuffle(x, groups):
    b, c, h, w = x.shape
    x = x.view(b, groups, c // groups, h, w)
    x = torch.transpose(x, 1, 2).contiguous()
    return x.view(b, c, h, w)


class Unit(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.stride = stride
        half = cout // 2
        if stride > 1:
            self.branch1 = nn.Sequential(
                nn.Conv2d(cin, cin, 3, stride, 1, groups=cin, bias=False),
                nn.BatchNorm2d(cin),
                nn.Conv2d(cin, half, 1, bias=False),
                nn.BatchNorm2d(half),
                nn.ReLU(inplace=True),
            )
        first = cin if stride > 1 else half
        self.branch2 = nn.Sequential(
            nn.Conv2d(first, half, 1, bias=False),
            nn.BatchNorm2d(half),
            nn.ReLU(inplace=True),
            nn.Conv2d(half, half, 3, stride, 1, groups=half, bias=False),
            nn.BatchNorm2d(half),
            nn.Conv2d(half, half, 1, bias=False),
            nn.BatchNorm2d(half),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        if self.stride == 1:
            x1, x2 = x.chunk(2, dim=1)
            out = torch.cat((x1, self.branch2(x2)), dim=1)
        else:
            out = torch.cat((self.branch1(x), self.branch2(x)), dim=1)
        return channel_shuffle(out, 2)


class ShuffleNetV2(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Sequential(
            nn.Conv2d(3, 12, 3, 2, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU(inplace=True)
        )
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.stage2 = nn.Sequential(Unit(12, 24, 2), Unit(24, 24, 1))
        self.stage3 = nn.Sequential(Unit(24, 48, 2), Unit(48, 48, 1))
        self.conv5 = nn.Sequential(
            nn.Conv2d(48, 64, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)
        )
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = self.stage3(self.stage2(self.maxpool(self.conv1(x))))
        return self.fc(self.conv5(x).mean([2, 3]))


def shufflenet():
    return ShuffleNetV2()


def batch(rows):
    return (torch.randn(rows, 3, 64, 64),)
