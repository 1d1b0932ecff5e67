"""An encoder-decoder as in a lecture: scaled shared embedding, sinusoids, own attention for self and cross, label smoothing."""

import math

import torch
from torch import nn

PAD = 0


def sinusoids(length, dim):
    pos = torch.arange(length, dtype=torch.float32)[:, None]
    i = torch.arange(dim, dtype=torch.float32)[None, :]
    angle = pos / torch.pow(10000.0, 2 * (i // 2) / dim)
    return torch.where(torch.arange(dim)[None, :] % 2 == 0, angle.sin(), angle.cos())


class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads, dropout):
        super().__init__()
        self.n_heads, self.d_k = n_heads, d_model // n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def heads(self, t):
        return t.view(t.size(0), t.size(1), self.n_heads, self.d_k).transpose(1, 2)

    def forward(self, query, memory, mask):
        q, k, v = self.heads(self.w_q(query)), self.heads(self.w_k(memory)), self.heads(self.w_v(memory))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.d_k)
        scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)
        p = self.drop(torch.softmax(scores, dim=-1))
        out = torch.matmul(p, v).transpose(1, 2).contiguous()
        return self.w_o(out.view(out.size(0), out.size(1), -1))


class Residual(nn.Module):
    def __init__(self, d_model, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, inner):
        return x + self.drop(inner(self.norm(x)))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, dropout):
        super().__init__()
        self.self_attn = MultiHead(d_model, n_heads, dropout)
        self.ff = nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.ReLU(), nn.Linear(2 * d_model, d_model))
        self.res = nn.ModuleList([Residual(d_model, dropout) for _ in range(2)])

    def forward(self, x, src_mask):
        x = self.res[0](x, lambda y: self.self_attn(y, y, src_mask))
        return self.res[1](x, self.ff)


class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, dropout):
        super().__init__()
        self.self_attn = MultiHead(d_model, n_heads, dropout)
        self.cross_attn = MultiHead(d_model, n_heads, dropout)
        self.ff = nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.ReLU(), nn.Linear(2 * d_model, d_model))
        self.res = nn.ModuleList([Residual(d_model, dropout) for _ in range(3)])

    def forward(self, x, memory, src_mask, tgt_mask):
        x = self.res[0](x, lambda y: self.self_attn(y, y, tgt_mask))
        x = self.res[1](x, lambda y: self.cross_attn(y, memory, src_mask))
        return self.res[2](x, self.ff)


class Translator(nn.Module):
    def __init__(self, vocab=90, d_model=32, n_heads=4, n_enc=2, n_dec=2, max_length=128, dropout=0.1):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"d_model={d_model} cannot be split into n_heads={n_heads}")
        self.d_model, self.max_length = d_model, max_length
        self.embedding = nn.Embedding(vocab, d_model, padding_idx=PAD)
        self.register_buffer("pe", sinusoids(max_length, d_model), persistent=False)
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.ModuleList([EncoderLayer(d_model, n_heads, dropout) for _ in range(n_enc)])
        self.decoder = nn.ModuleList([DecoderLayer(d_model, n_heads, dropout) for _ in range(n_dec)])
        self.enc_norm, self.dec_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.generator = nn.Linear(d_model, vocab, bias=False)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.generator.weight = self.embedding.weight

    def place(self, ids):
        x = self.embedding(ids) * math.sqrt(self.d_model)
        return self.drop(x + self.pe[: ids.size(1)].to(x.dtype))

    def encode(self, src, src_mask):
        x = self.place(src)
        for layer in self.encoder:
            x = layer(x, src_mask)
        return self.enc_norm(x)

    def decode(self, tgt, memory, src_mask, tgt_mask):
        x = self.place(tgt)
        for layer in self.decoder:
            x = layer(x, memory, src_mask, tgt_mask)
        return self.dec_norm(x)

    def forward(self, src, tgt, src_mask=None, labels=None):
        if src_mask is None:
            src_mask = src != PAD
        src_mask = src_mask.bool()[:, None, None, :]
        length = tgt.size(1)
        tgt_mask = torch.tril(torch.ones(length, length, dtype=torch.bool, device=tgt.device))
        logits = self.generator(self.decode(tgt, self.encode(src, src_mask), src_mask, tgt_mask))
        if labels is None:
            return {"logits": logits}
        loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=PAD, label_smoothing=0.1)
        return {"loss": loss, "logits": logits}


def make_model(d_model=32, n_heads=4, n_enc=2, n_dec=2):
    return Translator(d_model=d_model, n_heads=n_heads, n_enc=n_enc, n_dec=n_dec)


def make_batch(rows, length):
    src, out = torch.randint(3, 90, (rows, length)), torch.randint(3, 90, (rows, length))
    tgt = torch.cat([torch.ones(rows, 1, dtype=torch.long), out[:, :-1]], dim=1)
    return {"src": src, "tgt": tgt, "src_mask": torch.ones(rows, length, dtype=torch.bool), "labels": out}
