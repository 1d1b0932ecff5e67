import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.heads = heads

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(a.transpose(1, 2).reshape(b, n, d))
        return x + self.down(nn.functional.gelu(self.up(self.n2(x))))


class MaskHead(nn.Module):
    def __init__(self, dim, channels, temperature=2.0):
        super().__init__()
        self.proj = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(2 * dim, channels)
        self.temperature = temperature

    def forward(self, x):
        return self.out(torch.relu(self.proj(x))) / self.temperature


class PanopticNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.patch = nn.Linear(cfg["patch_dim"], cfg["dim"])
        self.layers = nn.ModuleList(Layer(cfg["dim"], cfg["heads"]) for _ in range(cfg["layers"]))
        self.norm = nn.LayerNorm(cfg["dim"])
        self.classify = nn.Linear(cfg["dim"], cfg["classes"])
        self.mask_head = MaskHead(cfg["dim"], cfg["mask_channels"])

    def forward(self, patches, annotated):
        x = self.patch(patches)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        logits = self.classify(x.mean(1))
        masks = self.mask_head(x[annotated]) if annotated.any() else None
        return logits, masks
