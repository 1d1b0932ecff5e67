import argparse
import random
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from moe import ExpertParallelFFN

PAD = 0


class MoELM(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.mix = nn.GRU(dim, dim, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.moe = ExpertParallelFFN(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        h = self.mix(self.emb(ids))[0]
        keep = ids != PAD
        x = self.norm(h[keep])
        return self.head(h[keep] + self.moe(x, ids[keep])), keep


def documents(rank, vocab):
    """Endless document stream, most short, a few empty after cleaning."""
    rng = random.Random(77 + rank)
    while True:
        n = int(rng.paretovariate(1.3) * 6)
        if rng.random() < 0.17:
            n = 0
        yield [rng.randrange(1, vocab) for _ in range(min(n, 60))]


def collate(docs, length):
    out = torch.full((len(docs), length), PAD)
    for row, d in zip(out, docs):
        d = d[:length]
        row[: len(d)] = torch.tensor(d, dtype=torch.long)
    return out


def sync_dense(model, world):
    for p in model.parameters():
        if getattr(p, "is_expert", False):
            continue
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= world


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=20000)
    ap.add_argument("--bs", type=int, default=3)
    ap.add_argument("--length", type=int, default=32)
    ap.add_argument("--vocab", type=int, default=600)
    ap.add_argument("--dim", type=int, default=64)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = MoELM(args.vocab, args.dim)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    docs = documents(rank, args.vocab)

    t0, tokens = time.time(), 0
    for step in range(args.steps):
        ids = collate([next(docs) for _ in range(args.bs)], args.length + 1)
        logits, keep = model(ids[:, :-1])
        loss = F.cross_entropy(logits, ids[:, 1:][keep], ignore_index=PAD, reduction="sum") / max(1, int(keep.sum()))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        sync_dense(model, world)
        opt.step()
        tokens += int(keep.sum())
        if rank == 0 and step % 25 == 0:
            print(f"step {step:5d} loss {loss.item():.3f} {tokens / (time.time() - t0):.0f} tok/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
