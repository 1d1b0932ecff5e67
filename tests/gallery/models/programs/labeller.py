"""A tagger of words: a bidirectional LSTM over padded sentences, as a LightningModule."""

import lightning as L
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class CharFeatures(nn.Module):
    """Turns hashed word shapes into features, with random projections that are drawn once."""

    def __init__(self, size, buckets=16):
        super().__init__()
        self.buckets = buckets
        self.register_buffer("projection", torch.randn(buckets, size) / buckets**0.5)

    def forward(self, words):
        shape = torch.nn.functional.one_hot(words % self.buckets, self.buckets).to(self.projection.dtype)
        return shape @ self.projection


class Highway(nn.Module):
    def __init__(self, size, bias=True):
        super().__init__()
        self.transform = nn.Linear(size, size, bias=bias)
        self.carry = nn.Linear(size, size, bias=bias)

    def forward(self, x):
        gate = torch.sigmoid(self.carry(x))
        return gate * torch.tanh(self.transform(x)) + (1 - gate) * x


class SentenceEncoder(nn.Module):
    def __init__(self, size, hidden, layers):
        super().__init__()
        self.lstm = nn.LSTM(size, hidden, num_layers=layers, batch_first=True, bidirectional=True)

    def forward(self, x, mask):
        lengths = mask.sum(dim=1).clamp(min=1).cpu().long()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.lstm(packed)
        out, _ = pad_packed_sequence(out, batch_first=True, total_length=x.size(1))
        return out


class Tagger(L.LightningModule):
    def __init__(self, words=150, tags=7, size=24, hidden=16, layers=1, dropout=0.2, lr=1e-3, bias=True):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Embedding(words, size, padding_idx=0)
        self.shape = CharFeatures(size)
        self.norm = nn.LayerNorm(size)
        self.highway = Highway(size, bias=bias)
        self.encoder = SentenceEncoder(size, hidden, layers)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(2 * hidden, tags)
        self.loss = nn.CrossEntropyLoss(ignore_index=-100)

    def forward(self, words, mask):
        x = self.norm(self.embed(words) + self.shape(words))
        x = self.highway(self.dropout(x))
        x = self.encoder(x, mask)
        return self.out(self.dropout(x))

    def step(self, batch):
        logits = self(batch["words"], batch["mask"])
        tags = batch["tags"].masked_fill(batch["mask"] == 0, -100)
        return self.loss(logits.reshape(-1, logits.size(-1)), tags.reshape(-1))

    def training_step(self, batch, batch_idx):
        return self.step(batch)

    def validation_step(self, batch, batch_idx):
        return self.step(batch)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def tagger(size=24, hidden=16, layers=1, bias=True):
    return Tagger(size=size, hidden=hidden, layers=layers, bias=bias)


def sentences(rows, length):
    words = torch.randint(1, 150, (rows, length))
    return {"words": words, "mask": torch.ones(rows, length, dtype=torch.long), "tags": torch.randint(0, 7, (rows, length))}
