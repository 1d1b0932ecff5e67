"""PointNet: a learned alignment, shared layers, the maximum over points."""
import torch
import torch.nn.functional as F
from torch import nn


class TNet(nn.Module):
    def __init__(self, k=3):
        super().__init__()
        self.k = k
        self.conv1 = nn.Conv1d(k, 16, 1)
        self.conv2 = nn.Conv1d(16, 32, 1)
        self.bn1 = nn.BatchNorm1d(16)
        self.bn2 = nn.BatchNorm1d(32)
        self.fc = nn.Linear(32, k * k)
        nn.init.zeros_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        h = F.relu(self.bn2(self.conv2(h)))
        h = self.fc(h.max(dim=2)[0])
        return h.view(-1, self.k, self.k) + torch.eye(self.k, dtype=x.dtype, device=x.device)


class PointNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.tnet = TNet()
        self.conv1 = nn.Conv1d(3, 24, 1)
        self.conv2 = nn.Conv1d(24, 48, 1)
        self.bn1 = nn.BatchNorm1d(24)
        self.bn2 = nn.BatchNorm1d(48)
        self.fc = nn.Linear(48, classes)

    def forward(self, points):
        x = points.transpose(1, 2)
        x = torch.bmm(self.tnet(x), x)
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = x.max(dim=2)[0]
        return self.fc(x)


def pointnet():
    return PointNet()


def clouds(rows):
    return torch.randn(rows, 32, 3)
