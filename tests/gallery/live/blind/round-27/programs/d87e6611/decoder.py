import time

import torch
import torch.nn.functional as F
from torch import nn


class DecoderLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        time.sleep(0.015)
        return x + self.mlp(self.n2(x))


class ModelStage(nn.Module):
    def __init__(self, cfg, idx):
        super().__init__()
        self.first, self.last = idx == 0, idx == cfg["stages"] - 1
        dim, vocab = cfg["dim"], cfg["vocab_size"]
        self.emb = nn.Embedding(vocab, dim) if self.first else None
        self.layers = nn.ModuleList(DecoderLayer(dim) for _ in range(2))
        if self.last:
            self.head = nn.Linear(dim, vocab)
            self.mtp = nn.ModuleList(DecoderLayer(dim) for _ in range(cfg["mtp_num_layers"]))

    def forward(self, x):
        if self.first:
            x = self.emb(x)
        for layer in self.layers:
            x = layer(x)
        return x


class LMLoss:
    def __init__(self, stage, cfg):
        self.stage, self.cfg = stage, cfg
        self.use_mtp = False

    def head_loss(self, hidden, target):
        logits = self.stage.head(hidden)
        time.sleep(0.02)
        return F.cross_entropy(logits.flatten(0, 1), target.flatten())

    def __call__(self, hidden, target):
        loss = self.head_loss(hidden, target)
        if self.use_mtp:
            for depth, layer in enumerate(self.stage.mtp, 1):
                hidden = layer(hidden)
                for piece in range(4):
                    part = slice(piece * 8, piece * 8 + 8)
                    shifted = target.roll(-depth, 1)
                    loss = loss + 0.1 * self.head_loss(hidden[:, part], shifted[:, part])
        return loss
