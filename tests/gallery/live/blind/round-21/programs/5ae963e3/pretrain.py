import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from snapshots import SnapshotStore


class TinyLM(nn.Module):
    def __init__(self, vocab=256, width=48):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.head(hidden)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=5000)
    p.add_argument("--save-every", type=int, default=25)
    p.add_argument("--keep-last", type=int, default=3)
    return p.parse_args()


def next_tokens(gen, batch=8, length=24):
    time.sleep(0.12)
    return torch.randint(0, 256, (batch, length + 1), generator=gen)


def main():
    args = parse()
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    rank = dist.get_rank()
    torch.manual_seed(7)
    model = DDP(TinyLM())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    gen = torch.Generator().manual_seed(100 + rank)
    store = SnapshotStore(keep_last=args.keep_last) if rank == 0 else None

    for step in range(1, args.steps + 1):
        tokens = next_tokens(gen)
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if rank == 0 and step % 5 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if store is not None and step % args.save_every == 0:
            store.save(step, model.module.state_dict())

    if store is not None:
        store.wait()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
