import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import ops


def angles(n, dim, base=10000.0):
    inv = base ** (-torch.arange(0, dim, 2).float() / dim)
    a = torch.outer(torch.arange(n).float(), inv)
    a = torch.cat([a, a], dim=-1)
    return a.cos(), a.sin()


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        cos, sin = angles(t, d // self.heads)
        q, k = ops.rotary(q, cos, sin), ops.rotary(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class RopeLM(nn.Module):
    def __init__(self, vocab=512, dim=96, heads=4, layers=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.attn = nn.ModuleList(Attention(dim, heads) for _ in range(layers))
        self.ffn = nn.ModuleList(nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
                                 for _ in range(layers))
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        x = self.emb(ids)
        for a, f in zip(self.attn, self.ffn):
            x = x + a(self.norm(x))
            x = x + f(self.norm(x))
        return self.norm(x) @ self.emb.weight.t()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=5000)
    ap.add_argument("--bs", type=int, default=4)
    ap.add_argument("--ctx", type=int, default=64)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    ops.get_ext()
    model = DDP(RopeLM())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(rank)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        ids = (torch.randint(0, 512, (args.bs, 1), generator=gen) + torch.arange(args.ctx + 1) * 5) % 512
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f} {step / (time.time() - t0):.1f} it/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
