import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, dim, heads, causal):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.heads = heads
        self.causal = causal

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class VisionTower(nn.Module):
    def __init__(self, dim, depth, heads, patch=8, image=32):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.pos = nn.Parameter(torch.zeros(1, (image // patch) ** 2, dim))
        self.blocks = nn.ModuleList(Block(dim, heads, False) for _ in range(depth))
        self.merger = nn.Linear(dim, dim)

    def forward(self, pixel_values):
        x = self.patch(pixel_values).flatten(2).transpose(1, 2) + self.pos
        for b in self.blocks:
            x = b(x)
        return self.merger(x)


class VLM(nn.Module):
    def __init__(self, vocab=512, dim=128, depth=4, heads=4, vision_depth=2, image_token=3):
        super().__init__()
        self.image_token = image_token
        self.embed = nn.Embedding(vocab, dim)
        self.visual = VisionTower(dim, vision_depth, heads)
        self.layers = nn.ModuleList(Block(dim, heads, True) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, input_ids, labels, pixel_values=None):
        x = self.embed(input_ids)
        if pixel_values is not None:
            feats = self.visual(pixel_values)
            mask = input_ids == self.image_token
            x = x.masked_scatter(mask.unsqueeze(-1), feats.reshape(-1, x.size(-1)))
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
