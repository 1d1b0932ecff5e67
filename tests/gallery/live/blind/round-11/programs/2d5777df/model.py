import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, dim, heads=4, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class VisionTower(nn.Module):
    def __init__(self, patch_dim, dim, depth):
        super().__init__()
        self.patch_embed = nn.Linear(patch_dim, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.proj = nn.Linear(dim, dim)

    def forward(self, pixels):
        x = self.patch_embed(pixels)
        for blk in self.blocks:
            x = blk(x)
        return self.proj(x)


class VisionLanguageModel(nn.Module):
    def __init__(self, vocab=512, dim=96, depth=3, vision_depth=2, patch_dim=48):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.vision = VisionTower(patch_dim, dim, vision_depth)
        self.layers = nn.ModuleList(Block(dim, causal=True) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids, pixel_values=None):
        h = self.tok(input_ids)
        if pixel_values is not None:
            img = self.vision(pixel_values)
            h = torch.cat([img.flatten(0, 1)[None].expand(h.size(0), -1, -1)[:, :16], h], dim=1)
        n_img = h.size(1) - input_ids.size(1)
        for layer in self.layers:
            h = layer(h)
        return self.head(h[:, n_img:])
