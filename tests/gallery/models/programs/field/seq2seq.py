"""A recurrent translator with additive attention."""
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, hidden, memory):
        super().__init__()
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key = nn.Linear(memory, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(self, query, memory, mask):
        e = self.score(torch.tanh(self.query(query)[:, None] + self.key(memory))).squeeze(-1)
        e = e.masked_fill(mask == 0, torch.finfo(e.dtype).min)
        weights = e.softmax(-1)
        return torch.bmm(weights[:, None], memory).squeeze(1)


class Seq2Seq(nn.Module):
    def __init__(self, vocab=50, hidden=16, layers=1, bidirectional=False):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.encoder = nn.GRU(hidden, hidden, layers, batch_first=True, bidirectional=bidirectional)
        memory = hidden * (2 if bidirectional else 1)
        self.attention = Attention(hidden, memory)
        self.cell = nn.GRUCell(hidden + memory, hidden)
        self.start = nn.Parameter(torch.zeros(hidden))
        self.out = nn.Linear(hidden, vocab, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, src, src_mask, tgt):
        emb = self.embed(src)
        if self.encoder.bidirectional:
            packed = nn.utils.rnn.pack_padded_sequence(
                emb, src_mask.sum(1).clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
            )
            memory, _ = nn.utils.rnn.pad_packed_sequence(
                self.encoder(packed)[0], batch_first=True, total_length=src.shape[1]
            )
        else:
            memory, _ = self.encoder(emb)
        h = self.start.expand(src.shape[0], -1)
        words = self.embed(tgt)
        outs = []
        for t in range(tgt.shape[1] - 1):
            context = self.attention(h, memory, src_mask)
            h = self.cell(torch.cat([words[:, t], context], -1), h)
            outs.append(h)
        logits = self.out(torch.stack(outs, 1))
        loss = F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten())
        return {"loss": loss, "logits": logits}


def make(vocab=50, hidden=16, layers=1, bidirectional=False):
    return Seq2Seq(vocab, hidden, layers, bidirectional)


def batch(rows, length=10):
    return {
        "src": torch.randint(1, 50, (rows, length)),
        "src_mask": torch.ones(rows, length, dtype=torch.long),
        "tgt": torch.randint(1, 50, (rows, 8)),
    }
