"""A UNet conditioned on text by cross-attention; padding of the prompt is masked."""
import torch
import torch.nn.functional as F
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, dim, context, heads=2):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(context, dim, bias=False)
        self.to_v = nn.Linear(context, dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x, context, mask):
        b, n, c = x.shape
        q, k, v = self.to_q(x), self.to_k(context), self.to_v(context)
        q, k, v = (y.view(b, -1, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.to_out(out.transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, dim, context):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = CrossAttention(dim, context)
        self.norm2 = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim))

    def forward(self, x, context, mask):
        b, c, h, w = x.shape
        y = x.flatten(2).transpose(1, 2)
        y = y + self.attn(self.norm1(y), context, mask)
        y = y + self.ff(self.norm2(y))
        return y.transpose(1, 2).reshape(b, c, h, w)


class TextToImage(nn.Module):
    def __init__(self, vocab=50, context=24, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, context)
        self.time = nn.Embedding(1000, width)
        self.conv_in = nn.Conv2d(4, width, 3, padding=1)
        self.down = nn.Conv2d(width, width * 2, 3, 2, 1)
        self.block = Block(width * 2, context)
        self.up = nn.ConvTranspose2d(width * 2, width, 4, 2, 1)
        self.block2 = Block(width, context)
        self.norm = nn.GroupNorm(4, width)
        self.conv_out = nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, sample, timestep, input_ids, attention_mask):
        context = self.embed(input_ids)
        mask = attention_mask.bool()
        h = self.conv_in(sample) + self.time(timestep)[:, :, None, None]
        d = self.block(self.down(h), context, mask)
        h = self.block2(h + self.up(d), context, mask)
        return {"sample": self.conv_out(F.silu(self.norm(h)))}


def make():
    return TextToImage()


def batch(rows, length=12):
    return {
        "sample": torch.randn(rows, 4, 8, 8),
        "timestep": torch.randint(0, 1000, (rows,)),
        "input_ids": torch.randint(1, 50, (rows, length)),
        "attention_mask": torch.ones(rows, length, dtype=torch.long),
    }
