"""GoogLeNet with an auxiliary classifier that only training uses."""
from typing import NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class InceptionOutputs(NamedTuple):
    loss: Optional[Tensor]
    logits: Tensor
    aux: Optional[Tensor]


class BasicConv2d(nn.Module):
    def __init__(self, cin, cout, **kw):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, bias=False, **kw)
        self.bn = nn.BatchNorm2d(cout, eps=0.001)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)), inplace=True)


class Inception(nn.Module):
    def __init__(self, cin, c1, c3r, c3, c5r, c5, pool):
        super().__init__()
        self.branch1 = BasicConv2d(cin, c1, kernel_size=1)
        self.branch2 = nn.Sequential(
            BasicConv2d(cin, c3r, kernel_size=1), BasicConv2d(c3r, c3, kernel_size=3, padding=1)
        )
        self.branch3 = nn.Sequential(
            BasicConv2d(cin, c5r, kernel_size=1), BasicConv2d(c5r, c5, kernel_size=3, padding=1)
        )
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(3, 1, 1, ceil_mode=True), BasicConv2d(cin, pool, kernel_size=1)
        )

    def forward(self, x):
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class InceptionAux(nn.Module):
    def __init__(self, cin, classes):
        super().__init__()
        self.conv = BasicConv2d(cin, 16, kernel_size=1)
        self.fc1 = nn.Linear(16 * 4, 32)
        self.fc2 = nn.Linear(32, classes)

    def forward(self, x):
        x = self.conv(F.adaptive_avg_pool2d(x, 2)).flatten(1)
        return self.fc2(F.dropout(F.relu(self.fc1(x)), 0.5, self.training))


class GoogLeNet(nn.Module):
    def __init__(self, classes=6, aux_logits=True):
        super().__init__()
        self.conv1 = BasicConv2d(3, 16, kernel_size=7, stride=2, padding=3)
        self.conv2 = BasicConv2d(16, 24, kernel_size=3, padding=1)
        self.inception3a = Inception(24, 8, 8, 16, 4, 8, 8)
        self.inception3b = Inception(40, 16, 8, 24, 4, 8, 8)
        self.aux = InceptionAux(40, classes) if aux_logits else None
        self.fc = nn.Linear(56, classes)

    def forward(self, x, target=None):
        x = F.max_pool2d(self.conv1(x), 3, 2, ceil_mode=True)
        x = F.max_pool2d(self.conv2(x), 3, 2, ceil_mode=True)
        x = self.inception3a(x)
        aux = self.aux(x) if self.training and self.aux is not None else None
        x = self.inception3b(F.max_pool2d(x, 2))
        logits = self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))
        loss = None
        if target is not None:
            loss = F.cross_entropy(logits, target)
            if aux is not None:
                loss = loss + 0.3 * F.cross_entropy(aux, target)
        return InceptionOutputs(loss, logits, aux)


def googlenet():
    return GoogLeNet()


def batch(batch_size):
    return {"x": torch.randn(batch_size, 3, 64, 64), "target": torch.randint(6, (batch_size,))}
