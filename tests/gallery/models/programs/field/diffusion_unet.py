"""A UNet that predicts the noise of a diffusion step (DDPM)."""
import math

import torch
import torch.nn.functional as F
from torch import nn


def timestep_embedding(t, dim, dtype):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1).to(dtype)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, emb):
        super().__init__()
        self.norm1 = nn.GroupNorm(4, cin)
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1)
        self.emb = nn.Linear(emb, cout)
        self.norm2 = nn.GroupNorm(4, cout)
        self.drop = nn.Dropout(0.1)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.emb(F.silu(emb))[:, :, None, None]
        h = self.conv2(self.drop(F.silu(self.norm2(h))))
        return self.skip(x) + h


class SelfAttention2d(nn.Module):
    def __init__(self, channels, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(4, channels)
        self.qkv = nn.Conv1d(channels, channels * 3, 1)
        self.out = nn.Conv1d(channels, channels, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x).reshape(b, c, h * w)).chunk(3, dim=1)
        q, k, v = (y.reshape(b, self.heads, c // self.heads, h * w).transpose(2, 3) for y in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(b, c, h * w)
        return x + self.out(out).reshape(b, c, h, w)


class UNet(nn.Module):
    def __init__(self, channels=3, base=16, emb=32):
        super().__init__()
        self.base = base
        self.time = nn.Sequential(nn.Linear(base, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.inp = nn.Conv2d(channels, base, 3, padding=1)
        self.down1 = ResBlock(base, base, emb)
        self.pool = nn.Conv2d(base, base, 3, stride=2, padding=1)
        self.down2 = ResBlock(base, base * 2, emb)
        self.attn = SelfAttention2d(base * 2)
        self.mid = ResBlock(base * 2, base * 2, emb)
        self.up = nn.Conv2d(base * 2, base, 3, padding=1)
        self.up1 = ResBlock(base * 2, base, emb)
        self.norm = nn.GroupNorm(4, base)
        self.out = nn.Conv2d(base, channels, 3, padding=1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        emb = self.time(timestep_embedding(t, self.base, x.dtype))
        a = self.down1(self.inp(x), emb)
        b = self.mid(self.attn(self.down2(self.pool(a), emb)), emb)
        b = self.up(F.interpolate(b, scale_factor=2, mode="nearest"))
        h = self.up1(torch.cat([a, b], dim=1), emb)
        return self.out(F.silu(self.norm(h)))


def unet():
    return UNet()


def batch(rows):
    return torch.randn(rows, 3, 16, 16), torch.randint(0, 1000, (rows,))
