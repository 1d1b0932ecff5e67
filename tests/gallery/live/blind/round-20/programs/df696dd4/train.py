import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from metrics import MetricStore
from status import StatusReporter


class CharLM(nn.Module):
    def __init__(self, vocab=96, dim=96, layers=4, heads=4, ctx=48):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(1, ctx, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, 3 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, vocab)
        self.register_buffer("mask", torch.triu(torch.full((ctx, ctx), float("-inf")), 1))

    def forward(self, x):
        h = self.tok(x) + self.pos[:, : x.shape[1]]
        return self.head(self.body(h, mask=self.mask[: x.shape[1], : x.shape[1]]))


def batches(rank, bs=6, ctx=48, vocab=96):
    g = torch.Generator().manual_seed(100 + rank)
    while True:
        start = torch.randint(0, vocab, (bs, 1), generator=g)
        stride = torch.randint(1, 5, (bs, 1), generator=g)
        seq = (start + stride * torch.arange(ctx + 1)) % vocab
        yield seq[:, :-1], seq[:, 1:]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--run-dir", required=True)
    p.add_argument("--steps", type=int, default=20000)
    p.add_argument("--lr", type=float, default=3e-4)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=2))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(CharLM())
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)

    store = reporter = None
    if rank == 0:
        store = MetricStore()
        reporter = StatusReporter(store, args.run_dir)
        reporter.start()

    data = batches(rank)
    t0 = time.time()
    for step in range(args.steps):
        x, y = next(data)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        if store is not None:
            grads = [(n, q.grad) for n, q in model.module.named_parameters() if q.grad is not None]
            store.update(step, {"loss": loss.item(), "lr": args.lr}, grads)
        opt.step()
        if step % 20 == 0:
            print(f"[rank {rank}] step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)

    if reporter is not None:
        reporter.stop()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
