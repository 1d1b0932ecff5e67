import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from .corpus import PassageShard
from .negatives import NegativePool
from .records import RecordWriter


class BiEncoder(nn.Module):
    def __init__(self, vocab=4000, dim=64):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.proj = nn.Sequential(nn.Linear(dim, 256), nn.GELU(), nn.Linear(256, dim))

    def forward(self, queries, passages):
        q = self.proj(self.emb(queries))
        offsets = torch.tensor([0] + [len(p) for p in passages[:-1]]).cumsum(0)
        p = self.proj(self.emb(torch.cat(passages), offsets))
        return F.normalize(q, dim=-1), F.normalize(p, dim=-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--steps", type=int, default=100000)
    ap.add_argument("--batch-size", type=int, default=8)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    model = DDP(BiEncoder())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    shard, pool = PassageShard(rank), NegativePool(rank)
    records = RecordWriter(args.out, rank)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        ids, queries, passages = shard.batch(args.batch_size)
        hard = pool.sample(8)
        q, p = model(queries, passages + [h[1] for h in hard])
        pool.push(ids, passages, p[: len(passages)])
        loss = F.cross_entropy(q @ p.t() / 0.05, torch.arange(len(ids)))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        records.add(step=step, loss=loss.item(), ids=ids, pool=len(pool.items))
        if step % 20 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} ({(time.time() - t0) / step * 1e3:.0f} ms/step)")
    records.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
