import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F

from corpus import stream
from moe import MoELayer


class Layer(nn.Module):
    def __init__(self, dim, heads, ffn):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.ffn = ffn

    def forward(self, x, mask):
        h = self.n1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.ffn(self.n2(x))


class MoELM(nn.Module):
    def __init__(self, vocab, dim, depth, n_experts, group):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(128, dim)
        dense = [Layer(dim, 4, nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)))
                 for _ in range(depth - 1)]
        self.moe = MoELayer(dim, 2 * dim, n_experts, group)
        self.layers = nn.ModuleList(dense + [Layer(dim, 4, self.moe)])
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        t = ids.shape[1]
        mask = torch.full((t, t), float("-inf")).triu(1)
        x = self.emb(ids) + self.pos(torch.arange(t))
        for layer in self.layers:
            x = layer(x, mask)
        return self.out(x)


def sync_dense_grads(params, world):
    flat = torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in params])
    dist.all_reduce(flat)
    flat /= world
    off = 0
    for p in params:
        p.grad = flat[off : off + p.numel()].view_as(p).clone()
        off += p.numel()


def worker(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.ranks)
    torch.manual_seed(args.seed)
    model = MoELM(256, args.dim, args.depth, args.experts, dist.group.WORLD)
    dense = [p for n, p in model.named_parameters() if ".experts." not in n]
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    total = torch.zeros(args.experts)
    t0 = time.time()
    for step, ids in enumerate(stream(rank, args.batch_size, args.seq_len), 1):
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        sync_dense_grads(dense, args.ranks)
        nn.utils.clip_grad_norm_(dense, 1.0)
        opt.step()
        opt.zero_grad()
        total += model.moe.load
        if step % 20 == 0:
            if rank == 0:
                share = (total / total.sum()).tolist()
                print(f"step {step} loss {loss.item():.3f} {(time.time() - t0) / 20 * 1e3:.0f} ms/step "
                      f"expert share {[round(s, 2) for s in share]}", flush=True)
            total.zero_()
            t0 = time.time()
        if step >= args.steps:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--ranks", type=int, default=3)
    p.add_argument("--steps", type=int, default=50000)
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--depth", type=int, default=2)
    p.add_argument("--experts", type=int, default=6)
    p.add_argument("--batch-size", type=int, default=4)
    p.add_argument("--seq-len", type=int, default=32)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=7)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, (args, port), nprocs=args.ranks)
