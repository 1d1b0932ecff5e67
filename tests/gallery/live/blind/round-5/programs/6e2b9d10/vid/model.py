import torch
from torch import nn
from vid.norm import CrossNorm


class VideoDepth(nn.Module):
    """stage A predicts from one frame; stage B refines with what is known of the frame before"""

    def __init__(self, c):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), CrossNorm(c), nn.ReLU(), nn.Conv2d(c, 1, 1))
        self.b = nn.Sequential(nn.Conv2d(2, c, 3, padding=1), CrossNorm(c), nn.ReLU(), nn.Conv2d(c, 1, 1))
        self.prev = None

    def forward(self, frame, first):
        y = self.a(frame)
        if not first and self.prev is not None:
            y = y + self.b(torch.cat([frame, self.prev], 1))
        self.prev = y.detach()
        return y
