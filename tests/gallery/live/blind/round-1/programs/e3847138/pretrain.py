import argparse
import math
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from saver import AsyncSaver

CFG = dict(vocab=1024, dim=96, heads=4, layers=2, ctx=32)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class LM(nn.Module):
    def __init__(self, vocab, dim, heads, layers, ctx):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(ctx, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        x = self.emb(ids) + self.pos.weight[: ids.shape[1]]
        for blk in self.blocks:
            x = blk(x)
        return self.norm(x) @ self.emb.weight.t()


def batches(rank, bs, ctx, vocab):
    g = torch.Generator().manual_seed(1000 + rank)
    while True:
        start = torch.randint(0, vocab, (bs, 1), generator=g)
        yield (start + torch.arange(ctx + 1) * 7) % vocab


def lr_at(step, peak, warmup, total):
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=5000)
    ap.add_argument("--bs", type=int, default=4)
    ap.add_argument("--save-every", type=int, default=20)
    ap.add_argument("--log-every", type=int, default=10)
    ap.add_argument("--ckpt-dir", default="ckpts")
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(LM(**CFG))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    saver = AsyncSaver(os.path.abspath(args.ckpt_dir))
    stream = batches(rank, args.bs, CFG["ctx"], CFG["vocab"])

    tick = time.time()
    for step in range(1, args.steps + 1):
        ids = next(stream)
        for group in opt.param_groups:
            group["lr"] = lr_at(step, 1e-3, 50, args.steps)
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % args.log_every == 0 and rank == 0:
            dt, tick = (time.time() - tick) / args.log_every, time.time()
            print(f"step {step} loss {loss.item():.3f} {dt * 1e3:.0f} ms/step", flush=True)
        if step % args.save_every == 0:
            saver.save(step, model.module.state_dict(), opt.state_dict())

    saver.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
