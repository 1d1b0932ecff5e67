"""ConvNeXt: depthwise 7x7, LayerNorm, layer scale."""
import torch
import torch.nn.functional as F
from torch import nn


class LayerNorm2d(nn.Module):
    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    def __init__(self, dim, layer_scale=1e-6):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU()
        self.pwconv2 = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(layer_scale * torch.ones(dim))

    def forward(self, x):
        out = self.dwconv(x).permute(0, 2, 3, 1)
        out = self.gamma * self.pwconv2(self.act(self.pwconv1(self.norm(out))))
        return x + out.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self, depths=(1, 1, 2), dims=(16, 24, 32), classes=7):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, dims[0], 4, 4), LayerNorm2d(dims[0]))
        stages = []
        for i, (depth, dim) in enumerate(zip(depths, dims)):
            if i:
                stages.append(
                    nn.Sequential(LayerNorm2d(dims[i - 1]), nn.Conv2d(dims[i - 1], dim, 2, 2))
                )
            stages.append(nn.Sequential(*(CNBlock(dim) for _ in range(depth))))
        self.stages = nn.Sequential(*stages)
        self.norm = nn.LayerNorm(dims[-1], eps=1e-6)
        self.head = nn.Linear(dims[-1], classes)
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            nn.init.trunc_normal_(m.weight, std=0.02)
            nn.init.zeros_(m.bias)

    def forward(self, x, y=None):
        x = self.stages(self.stem(x))
        logits = self.head(self.norm(x.mean([-2, -1])))
        out = {"logits": logits}
        if y is not None:
            out["loss"] = F.cross_entropy(logits, y, label_smoothing=0.1)
        return out


def convnext():
    return ConvNeXt()


def batch(rows):
    return {"x": torch.randn(rows, 3, 64, 64), "y": torch.randint(0, 7, (rows,))}
