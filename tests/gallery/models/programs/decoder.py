"""A small language model in the manner of Llama: rotary positions, RMSNorm, gated feed-forward, head tied to the embedding."""

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        dtype = x.dtype
        wide = x.float() if dtype in (torch.float16, torch.bfloat16) else x
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return wide.to(dtype) * self.weight


class Rotary(nn.Module):
    def __init__(self, dim, max_len, base=10000.0):
        super().__init__()
        inv_freq = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
        angles = torch.outer(torch.arange(max_len).float(), inv_freq)
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    @staticmethod
    def rotate_half(x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((-b, a), dim=-1)

    def forward(self, x):
        length = x.shape[-2]
        cos, sin = self.cos[:length].to(x.dtype), self.sin[:length].to(x.dtype)
        return x * cos + self.rotate_half(x) * sin


class Attention(nn.Module):
    def __init__(self, hidden, heads, rotary, dropout):
        super().__init__()
        self.heads = heads
        self.head_dim = hidden // heads
        self.q_proj = nn.Linear(hidden, hidden, bias=False)
        self.k_proj = nn.Linear(hidden, hidden, bias=False)
        self.v_proj = nn.Linear(hidden, hidden, bias=False)
        self.o_proj = nn.Linear(hidden, hidden, bias=False)
        self.rotary = rotary
        self.dropout = dropout

    def forward(self, x, bias):
        batch, length, hidden = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.heads, self.head_dim).transpose(1, 2)
        q, k = self.rotary(q), self.rotary(k)
        scores = q @ k.transpose(-1, -2) * self.head_dim**-0.5
        weights = F.softmax(scores.float() + bias, dim=-1).to(v.dtype) if scores.dtype != torch.float64 else F.softmax(scores + bias, dim=-1)
        weights = F.dropout(weights, self.dropout, training=self.training)
        out = (weights @ v).transpose(1, 2).reshape(batch, length, hidden)
        return self.o_proj(out)


class FeedForward(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, hidden, heads, rotary, dropout):
        super().__init__()
        self.norm1 = RMSNorm(hidden)
        self.attn = Attention(hidden, heads, rotary, dropout)
        self.norm2 = RMSNorm(hidden)
        self.mlp = FeedForward(hidden, 2 * hidden)

    def forward(self, x, bias):
        x = x + self.attn(self.norm1(x), bias)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, vocab=96, hidden=32, heads=4, layers=2, max_len=512, dropout=0.1, tie=True):
        super().__init__()
        if hidden % heads or (hidden // heads) % 2:
            raise ValueError(f"hidden {hidden} needs to be a multiple of heads {heads}, with an even size of each head")
        self.max_len = max_len
        self.tie_weights = tie
        self.embed = nn.Embedding(vocab, hidden)
        rotary = Rotary(hidden // heads, max_len)
        self.layers = nn.ModuleList([Block(hidden, heads, rotary, dropout) for _ in range(layers)])
        self.norm = RMSNorm(hidden)
        self.lm_head = nn.Linear(hidden, vocab, bias=False)
        self.apply(self.init_weights)
        if tie:
            self.lm_head.weight = self.embed.weight

    @staticmethod
    def init_weights(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def make_bias(self, x, mask):
        length = x.shape[1]
        allowed = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()[None, None]
        if mask is not None:
            if mask.dim() == 2:
                mask = mask.bool()[:, None, None, :]
            elif mask.is_floating_point():
                mask = mask > -1.0
            allowed = allowed & mask.bool()
        dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
        bias = torch.zeros(allowed.shape, dtype=dtype, device=x.device)
        return bias.masked_fill(~allowed, torch.finfo(dtype).min)

    def forward(self, input_ids, attention_mask=None, labels=None):
        if input_ids.shape[1] > self.max_len:
            raise ValueError(f"{input_ids.shape[1]} tokens, at most {self.max_len}")
        x = self.embed(input_ids)
        bias = self.make_bias(x, attention_mask)
        for layer in self.layers:
            x = layer(x, bias)
        logits = self.lm_head(self.norm(x))
        if labels is None:
            return {"logits": logits}
        if attention_mask is not None and attention_mask.dim() == 2:
            labels = labels.masked_fill(~attention_mask.bool(), -100)
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten(), ignore_index=-100)
        return {"loss": loss, "logits": logits}


def make(hidden=32, heads=4, layers=2, vocab=96, dropout=0.1):
    return Decoder(vocab=vocab, hidden=hidden, heads=heads, layers=layers, dropout=dropout)


def sample(batch, length):
    ids = torch.randint(0, 96, (batch, length))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}
