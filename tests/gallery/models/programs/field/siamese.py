"""Two views of an image through one encoder; a contrastive loss over their distance."""
import torch
import torch.nn.functional as F
from torch import nn


class Siamese(nn.Module):
    def __init__(self, dim=12, margin=1.0):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, dim),
        )
        self.margin = margin

    def forward(self, left, right, same):
        a, b = self.encoder(left), self.encoder(right)
        distance = F.pairwise_distance(a, b, eps=1e-6)
        loss = same * distance.pow(2) + (1 - same) * F.relu(self.margin - distance).pow(2)
        return loss.mean(), distance


def make():
    return Siamese()


def pairs(rows):
    left = torch.rand(rows, 1, 16, 16)
    right = torch.rand(rows, 1, 16, 16)
    same = torch.arange(rows) % 2
    right[same == 1] = left[same == 1]
    return left, right, same.float()
