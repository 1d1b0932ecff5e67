"""MobileNetV2: inverted residuals with linear bottlenecks."""
import torch
from torch import nn
import torch.nn.functional as F


class ConvBNReLU(nn.Sequential):
    def __init__(self, cin, cout, kernel=3, stride=1, groups=1):
        super().__init__(
            nn.Conv2d(cin, cout, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU6(inplace=True),
        )


class InvertedResidual(nn.Module):
    def __init__(self, cin, cout, stride, expand):
        super().__init__()
        hidden = cin * expand
        self.use_res = stride == 1 and cin == cout
        layers = [] if expand == 1 else [ConvBNReLU(cin, hidden, 1)]
        layers += [
            ConvBNReLU(hidden, hidden, stride=stride, groups=hidden),
            nn.Conv2d(hidden, cout, 1, bias=False),
            nn.BatchNorm2d(cout),
        ]
        self.conv = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.conv(x) if self.use_res else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        cin = 16
        features = [ConvBNReLU(3, cin, stride=2)]
        for t, c, n, s in ((1, 8, 1, 1), (6, 12, 2, 2), (6, 16, 2, 2), (6, 24, 1, 1)):
            for i in range(n):
                features.append(InvertedResidual(cin, c, s if i == 0 else 1, t))
                cin = c
        features.append(ConvBNReLU(cin, 96, 1))
        self.features = nn.Sequential(*features)
        self.p = 0.2
        self.classifier = nn.Linear(96, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out")

    def forward(self, images, labels=None):
        x = self.features(images).mean([2, 3])
        x = F.dropout(x, self.p, self.training)
        logits = self.classifier(x)
        if labels is None:
            return logits
        return F.cross_entropy(logits, labels), logits


def create():
    return MobileNetV2()


def sample(batch_size):
    return {
        "images": torch.randn(batch_size, 3, 48, 48),
        "labels": torch.randint(0, 10, (batch_size,)),
    }
