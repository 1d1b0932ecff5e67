import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from corpus import VOCAB, make_corpus, windows
from overlap import OverlapScanner


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class TinyLM(nn.Module):
    def __init__(self, dim=96, layers=2, heads=4, ctx=48):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, dim), nn.Embedding(ctx, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, VOCAB)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def batch_from(stream, size):
    rows = torch.tensor([next(stream) for _ in range(size)])
    return rows[:, :-1], rows[:, 1:]


def lm_loss(model, batch):
    ids, target = batch
    return nn.functional.cross_entropy(model(ids).flatten(0, 1), target.flatten())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--eval-interval", type=int, default=100)
    p.add_argument("--eval-docs", type=int, default=15)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))

    train_docs = make_corpus(400, seed=0)
    heldout = make_corpus(240, seed=1, long_at=(17, 101, 182))
    scanner = OverlapScanner(train_docs)

    torch.manual_seed(0)
    model = TinyLM()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), 1e-3)

    stream = windows(train_docs, 48, seed=100 + rank)
    t0, cursor = time.time(), 0
    for step in range(1, args.steps + 1):
        loss = lm_loss(model, batch_from(stream, 8))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 5 == 0:
            print(f"step {step:5d} loss {loss.item():.3f} {(time.time() - t0) / step * 1e3:.0f} ms", flush=True)
        if step % args.eval_interval == 0:
            chunk = [heldout[(cursor + k) % len(heldout)] for k in range(args.eval_docs)][rank::world]
            cursor += args.eval_docs
            held = windows(chunk, 48, seed=step)
            with torch.no_grad():
                val = sum(lm_loss(model, batch_from(held, 8)).item() for _ in range(4)) / 4
            covered, tokens = scanner.scan(chunk)
            stats = torch.tensor([val, covered, tokens], dtype=torch.float64)
            dist.all_reduce(stats)
            if rank == 0:
                print(f"eval {step}: loss {stats[0] / world:.3f} overlap {stats[1] / stats[2]:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
