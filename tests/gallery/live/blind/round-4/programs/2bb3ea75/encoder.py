import torch
import torch.nn as nn


class EncoderLayer(nn.TransformerEncoderLayer):
    def __init__(self, dim, heads):
        super().__init__(dim, heads, 4 * dim, dropout=0.0, batch_first=True, norm_first=True)


class SpeechEncoder(nn.Module):
    def __init__(self, dim, n_layers, heads, layerdrop, layerdrop_after=40):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.layers = nn.ModuleList(EncoderLayer(dim, heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(dim)
        self.layerdrop = layerdrop
        self.layerdrop_after = layerdrop_after
        self.num_updates = 0

    def set_num_updates(self, n):
        self.num_updates = n

    def forward(self, x):
        x = self.proj(x)
        p = self.layerdrop if self.training and self.num_updates >= self.layerdrop_after else 0.0
        for layer in self.layers:
            if p == 0.0 or torch.rand(()).item() > p:
                x = layer(x)
        return self.norm(x)
