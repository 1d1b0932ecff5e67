"""Two towers trained with in-batch negatives, as CLIP is: questions against passages."""

import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    def __init__(self, vocab, width, heads, layers):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, width, mode="mean")
        self.mix = nn.ModuleList(
            [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)) for _ in range(layers)]
        )
        self.project = nn.Linear(width, width, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.mix:
            x = x + layer(x)
        return F.normalize(self.project(x), dim=-1)


class Matcher(nn.Module):
    def __init__(self, vocab=100, width=24, heads=2, layers=2):
        super().__init__()
        self.questions = Tower(vocab, width, heads, layers)
        self.passages = Tower(vocab, width, heads, layers)
        self.logit_scale = nn.Parameter(torch.tensor(2.6592))

    def forward(self, questions, passages):
        q, p = self.questions(questions), self.passages(passages)
        scores = self.logit_scale.exp().clamp(max=100.0) * q @ p.t()
        target = torch.arange(len(scores), device=scores.device)
        loss = (F.cross_entropy(scores, target) + F.cross_entropy(scores.t(), target)) / 2
        return {"loss": loss, "questions": q, "passages": p}


def make(width=24, layers=2):
    return Matcher(width=width, layers=layers)


def pairs(rows, length):
    return {"questions": torch.randint(100, (rows, length)), "passages": torch.randint(100, (rows, length))}
