import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads, ffn):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, ffn)
        self.fc2 = nn.Linear(ffn, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(att.transpose(1, 2).reshape(b, t, d))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class SpeechEncoder(nn.Module):
    def __init__(self, feat_dim, dim, heads, ffn, num_layers, vocab):
        super().__init__()
        self.frontend = nn.Linear(feat_dim, dim)
        self.layers = nn.ModuleList([EncoderLayer(dim, heads, ffn) for _ in range(num_layers)])
        self.final_norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)
        self.layerdrop = 0.0
        self.rng = np.random.default_rng()

    def forward(self, feats):
        x = self.frontend(feats)
        for layer in self.layers:
            if self.training and self.layerdrop > 0 and self.rng.random() < self.layerdrop:
                continue
            x = layer(x)
        return self.head(self.final_norm(x))
