import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from bucketing import LengthBuckets


def bias_gelu(x, bias):
    return nn.functional.gelu(x + bias)


class Block(nn.Module):
    act = staticmethod(bias_gelu)

    def __init__(self, d):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d)
        self.up_bias = nn.Parameter(torch.zeros(4 * d))

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).chunk(3, -1)
        a = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).softmax(-1) @ v
        x = x + self.proj(a)
        return x + self.down(self.act(self.up(self.n2(x)), self.up_bias))


class GPT(nn.Module):
    def __init__(self, vocab=256, d=32):
        super().__init__()
        self.emb, self.block, self.head = nn.Embedding(vocab, d), Block(d), nn.Linear(d, vocab)

    def forward(self, idx):
        return self.head(self.block(self.emb(idx)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--compile", action="store_true")
    p.add_argument("--iters", type=int, default=50000)
    a = p.parse_args()
    torch.set_num_threads(1)
    torch._dynamo.config.cache_size_limit = 64
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = GPT()
    if a.compile:
        if rank == 0:
            print("compiling the fused kernels... (takes a ~minute)", flush=True)
        Block.act = staticmethod(torch.compile(bias_gelu, dynamic=False))
    model = DDP(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    buckets = LengthBuckets(rank)
    for it in range(a.iters):
        t0 = time.time()
        x = torch.randint(0, 256, (2, buckets.length(it) + 1))
        loss = nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        if rank == 0 and it % 10 == 0:
            print(f"iter {it}: loss {loss.item():.4f}, time {(time.time() - t0) * 1000:.2f}ms", flush=True)


if __name__ == "__main__":
    main()
