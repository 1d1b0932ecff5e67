import argparse
import json
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from negatives import NegativeBank, release_host_memory

# queries mined per language split: en, de, zh
SPLITS = [("de", 1500), ("en", 2000), ("zh", 110000)]


class TwoTower(nn.Module):
    def __init__(self, n_docs, n_queries, dim=64):
        super().__init__()
        self.q = nn.Embedding(n_queries, dim)
        self.d = nn.Embedding(n_docs, dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, q, docs):
        qv = F.normalize(self.proj(self.q(q)), dim=-1)
        dv = F.normalize(self.d(docs), dim=-1)
        return torch.einsum("bd,bkd->bk", qv, dv) / 0.05


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=10000)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--negatives", type=int, default=7)
    ap.add_argument("--per-query", type=int, default=32)
    ap.add_argument("--docs", type=int, default=4000)
    ap.add_argument("--log", default="metrics.jsonl")
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    lang, n_queries = SPLITS[rank % len(SPLITS)]
    bank = NegativeBank(n_queries, args.per_query, args.docs, seed=rank)
    print(f"[{rank}] split {lang}: {n_queries} queries, {len(bank)} negatives", flush=True)
    dist.barrier()

    torch.manual_seed(0)
    model = DDP(TwoTower(args.docs, 2000))
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
    gen = torch.Generator().manual_seed(rank)

    large_bank = len(bank) > 1_000_000
    last = time.time()
    for step in range(1, args.steps + 1):
        queries = torch.randint(0, n_queries, (args.batch,), generator=gen)
        docs = torch.tensor([[int(q) % args.docs] + bank.sample(int(q), args.negatives) for q in queries])
        scores = model(queries % 2000, docs)
        loss = F.cross_entropy(scores, torch.zeros(args.batch, dtype=torch.long))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if large_bank:
            release_host_memory()
        if step % 5 == 0 and rank == 0:
            now = time.time()
            rec = {"step": step, "loss": round(loss.item(), 4), "sec_per_step": round((now - last) / 5, 3)}
            last = now
            print(rec, flush=True)
            with open(args.log, "a") as f:
                f.write(json.dumps(rec) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
