"""A Perceiver: a few latents read the frames of a video; some frames are padding."""
import torch
import torch.nn.functional as F
from torch import nn


class Perceiver(nn.Module):
    def __init__(self, features=10, dim=16, latents=4, heads=2, classes=5):
        super().__init__()
        self.project = nn.Linear(features, dim)
        self.time = nn.Embedding(128, dim)
        self.latents = nn.Parameter(torch.randn(latents, dim) * 0.2)
        self.norm_q = nn.LayerNorm(dim)
        self.norm_kv = nn.LayerNorm(dim)
        self.cross = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mixer = nn.TransformerEncoderLayer(dim, heads, 32, 0.1, batch_first=True)
        self.classifier = nn.Linear(2 * dim, classes)

    def forward(self, frames, frame_mask, labels=None):
        b, n, _ = frames.shape
        x = self.project(frames) + self.time(torch.arange(n, device=frames.device))
        x = self.norm_kv(x)
        q = self.norm_q(self.latents).expand(b, -1, -1)
        read, _ = self.cross(q, x, x, key_padding_mask=~frame_mask, need_weights=False)
        z = self.mixer(read + q).mean(1)
        keep = frame_mask.unsqueeze(-1).to(x.dtype)
        average = (x * keep).sum(1) / keep.sum(1).clamp(min=1)
        logits = self.classifier(torch.cat([z, average], -1))
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def make():
    return Perceiver()


def videos(rows, length=16):
    return {
        "frames": torch.randn(rows, length, 10),
        "frame_mask": torch.ones(rows, length, dtype=torch.bool),
        "labels": torch.randint(0, 5, (rows,)),
    }
