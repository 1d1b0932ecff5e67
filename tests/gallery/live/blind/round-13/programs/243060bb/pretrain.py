import argparse
import math
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from corpus import Corpus
from schedule import Link, run_1f1b


class Stage(nn.Module):
    def __init__(self, index, num_stages, vocab, dim, layers):
        super().__init__()
        self.index = index
        self.emb = nn.Embedding(vocab, dim) if index == 0 else None
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.head = nn.Linear(dim, vocab) if index == num_stages - 1 else None

    def forward(self, x):
        if self.emb is not None:
            x = self.emb(x)
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
        for b in self.blocks:
            x = b(x, src_mask=mask, is_causal=True)
        return x if self.head is None else self.head(x)


def clip_global(params, max_norm):
    sq = sum(p.grad.pow(2).sum() for p in params if p.grad is not None)
    dist.all_reduce(sq)
    scale = min(1.0, max_norm / (math.sqrt(sq.item()) + 1e-6))
    for p in params:
        if p.grad is not None:
            p.grad.mul_(scale)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--global-batch", type=int, default=16)
    ap.add_argument("--micro-batch", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=200)
    ap.add_argument("--dim", type=int, default=32)
    a = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    corpus = Corpus()
    stage = Stage(rank, world, vocab=200, dim=a.dim, layers=1)
    params = list(stage.parameters())
    opt = torch.optim.AdamW(params, lr=1e-3)
    link = Link(rank, world, (a.micro_batch, 32, a.dim))
    loss_fn = lambda y, t: F.cross_entropy(y.flatten(0, 1), t.flatten())
    steps = math.ceil(len(corpus) / a.global_batch)
    ends = rank in (0, world - 1)
    dist.barrier()
    t0, it = time.time(), 0
    for epoch in range(a.epochs):
        data = corpus.batches(a.global_batch) if ends else None
        for _ in range(steps):
            inputs = targets = None
            num_micro = a.global_batch // a.micro_batch
            if ends:
                x, y = next(data)
                inputs, targets = x.split(a.micro_batch), y.split(a.micro_batch)
                num_micro = len(inputs)
            loss = run_1f1b(stage, link, world, num_micro, inputs, targets, loss_fn)
            clip_global(params, 1.0)
            opt.step()
            opt.zero_grad()
            it += 1
            if rank == world - 1 and it % 10 == 0:
                print(f"epoch {epoch} step {it} loss {loss.item():.4f} {(time.time() - t0) / it * 1e3:.0f} ms/step",
                      flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
