"""A small attention model with two faults that nobody sees in training: the second layer drops
the mask, and a running scale is not saved.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, masked: bool) -> None:
        super().__init__()
        self.masked = masked
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        scores = self.query(x) @ self.key(x).transpose(-1, -2) / x.shape[-1] ** 0.5
        if self.masked:
            scores = scores.masked_fill(mask[:, None, :] == 0, torch.finfo(scores.dtype).min)
        return scores.softmax(-1) @ self.value(x)


class Tagger(nn.Module):  # type: ignore[misc]
    def __init__(
        self,
        masked: tuple[bool, ...] = (True, False),
        words: int = 61,
        width: int = 16,
        tags: int = 5,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Attention(width, one) for one in masked)
        self.head = nn.Linear(width, tags)
        self.register_buffer("scale", torch.ones(width), persistent=False)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        x = self.embed(input_ids)
        for layer in self.layers:
            x = x + layer(x, attention_mask)
        if self.training:
            with torch.no_grad():
                self.scale.mul_(0.9).add_(0.1 * x.detach().abs().mean((0, 1)))
        logits = self.head(x / self.scale)
        if labels is None:
            return {"logits": logits}
        return {
            "logits": logits,
            "loss": functional.cross_entropy(
                logits.flatten(0, 1), labels.flatten(), ignore_index=-100
            ),
        }


def make() -> Tagger:
    return Tagger()


def broken() -> Tagger:
    raise ValueError("there are no weights here")


def batch(rows: int = 2, length: int = 8) -> dict[str, Tensor]:
    ids = torch.randint(0, 61, (rows, length))
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "labels": torch.randint(0, 5, (rows, length)),
    }
