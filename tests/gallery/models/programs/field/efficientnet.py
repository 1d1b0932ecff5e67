"""EfficientNet: MBConv with squeeze and excitation and stochastic depth."""
import torch
from torch import nn


class SqueezeExcitation(nn.Module):
    def __init__(self, channels, squeeze):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, squeeze, 1)
        self.fc2 = nn.Conv2d(squeeze, channels, 1)

    def forward(self, x):
        scale = self.avgpool(x)
        scale = torch.sigmoid(self.fc2(nn.functional.silu(self.fc1(scale))))
        return scale * x


class StochasticDepth(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0.0:
            return x
        keep = torch.empty(x.shape[0], 1, 1, 1, dtype=x.dtype, device=x.device)
        return x * keep.bernoulli_(1 - self.p) / (1 - self.p)


class MBConv(nn.Module):
    def __init__(self, cin, cout, kernel, stride, expand, p):
        super().__init__()
        mid = cin * expand
        self.expand = nn.Sequential(
            nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid, 1e-3), nn.SiLU(True)
        )
        self.depthwise = nn.Sequential(
            nn.Conv2d(mid, mid, kernel, stride, kernel // 2, groups=mid, bias=False),
            nn.BatchNorm2d(mid, 1e-3),
            nn.SiLU(True),
        )
        self.se = SqueezeExcitation(mid, max(1, cin // 4))
        self.project = nn.Sequential(nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout, 1e-3))
        self.residual = stride == 1 and cin == cout
        self.drop = StochasticDepth(p)

    def forward(self, x):
        out = self.project(self.se(self.depthwise(self.expand(x))))
        return self.drop(out) + x if self.residual else out


class EfficientNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16, 1e-3), nn.SiLU(True)
        )
        self.blocks = nn.Sequential(
            MBConv(16, 16, 3, 1, 4, 0.0),
            MBConv(16, 24, 5, 2, 4, 0.05),
            MBConv(24, 24, 3, 1, 4, 0.1),
            MBConv(24, 32, 5, 2, 6, 0.15),
        )
        self.head = nn.Sequential(
            nn.Conv2d(32, 64, 1, bias=False), nn.BatchNorm2d(64, 1e-3), nn.SiLU(True)
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(0.2, inplace=True), nn.Linear(64, classes))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out")
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.head(self.blocks(self.stem(x)))
        return self.classifier(self.pool(x).flatten(1))


def build():
    return EfficientNet()


def images(rows=4):
    return torch.randn(rows, 3, 64, 64)
