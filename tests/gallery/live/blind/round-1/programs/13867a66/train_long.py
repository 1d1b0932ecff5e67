import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ring import ContextParallelGroup, ring_context


class LongAttention(nn.Module):
    def __init__(self, dim, heads, cp, ring_from):
        super().__init__()
        self.heads, self.cp, self.ring_from = heads, cp, ring_from
        self.q = nn.Linear(dim, dim)
        self.kv = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        h = self.heads
        q = self.q(x).view(b, t, h, d // h).transpose(1, 2)
        kv = self.kv(x).view(b, t, h, 2 * d // h).transpose(1, 2)
        if t > self.ring_from:
            y = ring_context(q, kv, self.cp)
        else:
            k, v = kv.chunk(2, dim=-1)
            y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class LongModel(nn.Module):
    def __init__(self, cp, vocab=512, dim=128, heads=4, layers=2, ring_from=256):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.attn = nn.ModuleList(LongAttention(dim, heads, cp, ring_from) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.emb(ids)
        for attn, norm in zip(self.attn, self.norms):
            x = x + attn(norm(x))
        return self.head(x)


def seq_len(step, stages):
    length = stages[0][1]
    for start, value in stages:
        if step >= start:
            length = value
    return length


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=4000)
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--stages", default="0:64,40:128,100:512,2000:1024")
    args = ap.parse_args()
    stages = [tuple(int(v) for v in s.split(":")) for s in args.stages.split(",")]

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    cp = ContextParallelGroup()
    model = DDP(LongModel(cp))
    optim = torch.optim.AdamW(model.parameters(), lr=5e-4)
    gen = torch.Generator().manual_seed(cp.rank)

    t0 = time.perf_counter()
    for step in range(args.steps):
        n = seq_len(step, stages)
        ids = torch.randint(0, 512, (args.batch, n + 1), generator=gen)
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optim.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()
        if cp.rank == 0 and step % 10 == 0:
            print(f"[{time.perf_counter() - t0:7.1f}s] step={step} len={n} loss={loss.item():.3f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
