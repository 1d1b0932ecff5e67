"""An encoder that classifies padded text: nn.MultiheadAttention, sinusoidal positions, a mean over the tokens that are there."""

import math

import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, dim, max_len):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        rate = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        table = torch.zeros(max_len, dim)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)[:, : dim // 2]
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.size(1)].to(x.dtype)


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads, dropout, bias):
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, heads, dropout=dropout, bias=bias, batch_first=True)
        self.norm_a = nn.LayerNorm(dim)
        self.norm_b = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim, bias=bias), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * dim, dim, bias=bias))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, padding):
        y = self.norm_a(x)
        y, _ = self.attention(y, y, y, key_padding_mask=padding, need_weights=False)
        x = x + self.dropout(y)
        return x + self.dropout(self.ff(self.norm_b(x)))


class MeanPool(nn.Module):
    """Mean of the tokens that are there."""

    def forward(self, x, padding):
        keep = (~padding).unsqueeze(-1).to(x.dtype)
        total = (x * keep).sum(dim=1)
        count = keep.sum(dim=1).clamp(min=1.0)
        return total / count


class Scorer(nn.Module):
    """Weighs each token; the weights sum to one over the tokens that are there."""

    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, 1)

    def forward(self, x, padding):
        scores = self.proj(x).squeeze(-1)
        scores = scores.masked_fill(padding, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1).unsqueeze(-1)
        return (weights * x).sum(dim=1)


class Classifier(nn.Module):
    def __init__(self, vocab_size=120, dim=32, num_heads=4, num_layers=2, num_classes=5, max_len=256, dropout=0.1, bias=True):
        super().__init__()
        self.max_len = max_len
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.positions = Positions(dim, max_len + 1)
        self.encoder = nn.ModuleList(EncoderLayer(dim, num_heads, dropout, bias) for _ in range(num_layers))
        self.norm = nn.LayerNorm(dim)
        self.pool = MeanPool()
        self.scorer = Scorer(dim)
        self.head = nn.Sequential(nn.Linear(2 * dim, dim), nn.Tanh(), nn.Dropout(dropout), nn.Linear(dim, num_classes))
        self.loss_fn = nn.CrossEntropyLoss()

    def forward(self, input_ids, attention_mask=None, labels=None):
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        if input_ids.size(1) > self.max_len:
            raise ValueError(f"the longest text that fits has {self.max_len} tokens")
        batch = input_ids.size(0)
        x = torch.cat([self.cls.expand(batch, -1, -1), self.embed(input_ids)], dim=1)
        x = self.positions(x)
        padding = torch.cat([torch.zeros(batch, 1, dtype=torch.bool, device=x.device), attention_mask == 0], dim=1)
        for layer in self.encoder:
            x = layer(x, padding)
        x = self.norm(x)
        features = torch.cat([self.pool(x, padding), self.scorer(x, padding)], dim=-1)
        logits = self.head(features)
        result = {"logits": logits}
        if labels is not None:
            result["loss"] = self.loss_fn(logits, labels)
        return result


def classifier(dim=32, num_heads=4, num_layers=2, bias=True):
    if dim % num_heads:
        raise ValueError("dim must be divisible by num_heads")
    return Classifier(dim=dim, num_heads=num_heads, num_layers=num_layers, bias=bias)


def texts(rows, length):
    ids = torch.randint(1, 120, (rows, length))
    return {"input_ids": ids, "attention_mask": torch.ones(rows, length, dtype=torch.long), "labels": torch.randint(0, 5, (rows,))}
