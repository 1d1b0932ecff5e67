"""An image classifier: a convolutional stem with BatchNorm, then transformer blocks over the patches."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvBN(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(cout)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class SqueezeExcite(nn.Module):
    def __init__(self, channels, reduction=4):
        super().__init__()
        self.fc1 = nn.Linear(channels, channels // reduction)
        self.fc2 = nn.Linear(channels // reduction, channels)

    def forward(self, x):
        scale = x.mean(dim=(2, 3))
        scale = torch.sigmoid(self.fc2(F.relu(self.fc1(scale))))
        return x * scale[:, :, None, None]


class DropPath(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if not self.training or self.rate == 0.0:
            return x
        keep = 1.0 - self.rate
        mask = x.new_empty(x.shape[0], 1, 1).bernoulli_(keep)
        return x * mask / keep


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        attn = attn.softmax(dim=-1)
        x = (attn @ v).transpose(1, 2).reshape(b, n, c)
        return self.proj(x)


class Block(nn.Module):
    def __init__(self, dim, heads, drop_path):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = SelfAttention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 2), nn.GELU(), nn.Linear(dim * 2, dim))
        self.drop_path = DropPath(drop_path)

    def forward(self, x):
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class Whitening(nn.Module):
    """Takes the mean of the features off, as it was seen in training."""

    def __init__(self, dim, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("center", torch.zeros(dim))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.center.lerp_(x.mean(dim=0).to(self.center.dtype), self.momentum)
        return x - self.center.to(x.dtype)


class HybridViT(nn.Module):
    def __init__(self, image=32, channels=16, dim=32, heads=4, depth=2, classes=10, drop_path=0.1):
        super().__init__()
        if dim % heads != 0:
            raise ValueError("dim % heads must be 0")
        self.stem = nn.Sequential(ConvBN(3, channels, 2), ConvBN(channels, channels, 2))
        self.se = SqueezeExcite(channels)
        self.to_tokens = nn.Conv2d(channels, dim, kernel_size=2, stride=2)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, (image // 8) ** 2 + 1, dim))
        rates = [drop_path * i / max(1, depth - 1) for i in range(depth)]
        self.blocks = nn.ModuleList([Block(dim, heads, rate) for rate in rates])
        self.norm = nn.LayerNorm(dim)
        self.whiten = Whitening(dim)
        self.head = nn.Linear(dim, classes)
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def features(self, pixels):
        x = self.se(self.stem(pixels))
        x = self.to_tokens(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = x + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.norm(x).mean(dim=1)

    def forward(self, pixels, labels=None):
        logits = self.head(self.whiten(self.features(pixels)))
        if labels is None:
            return logits
        return F.cross_entropy(logits, labels), logits


def create(dim=32, heads=4, depth=2, channels=16):
    return HybridViT(dim=dim, heads=heads, depth=depth, channels=channels)


def images(batch=4):
    return {"pixels": torch.randn(batch, 3, 32, 32), "labels": torch.randint(0, 10, (batch,))}
