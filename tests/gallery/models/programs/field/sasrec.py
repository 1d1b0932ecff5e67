"""SASRec: the next item of a user's history; item 0 is padding."""
import torch
import torch.nn.functional as F
from torch import nn


class SASRec(nn.Module):
    def __init__(self, items=60, dim=24, heads=2, layers=2, max_len=64, dropout=0.1):
        super().__init__()
        self.item_emb = nn.Embedding(items, dim, padding_idx=0)
        self.pos_emb = nn.Embedding(max_len, dim)
        self.max_len = max_len
        self.drop = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                dim, heads, dim * 4, dropout, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, items, bias=False)
        self.out.weight = self.item_emb.weight

    def forward(self, history, attention_mask, target):
        n = history.shape[1]
        if n > self.max_len:
            raise ValueError(f"a history has at most {self.max_len} items")
        pos = torch.arange(n, device=history.device)
        x = self.drop(self.item_emb(history) + self.pos_emb(pos))
        ahead = torch.triu(torch.ones(n, n, dtype=torch.bool, device=x.device), 1)
        padding = attention_mask == 0
        for layer in self.layers:
            x = layer(x, src_mask=ahead, src_key_padding_mask=padding)
        logits = self.out(self.norm(x))
        loss = F.cross_entropy(
            logits.flatten(0, 1), target.masked_fill(padding, -100).flatten(), ignore_index=-100
        )
        return {"loss": loss, "logits": logits}


def make():
    return SASRec()


def histories(rows, length=20):
    return {
        "history": torch.randint(1, 60, (rows, length)),
        "attention_mask": torch.ones(rows, length, dtype=torch.long),
        "target": torch.randint(1, 60, (rows, length)),
    }
