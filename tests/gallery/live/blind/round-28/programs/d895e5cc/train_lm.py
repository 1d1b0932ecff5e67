import argparse
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from shards import get_shard


class LM(nn.Module):
    def __init__(self, vocab=256, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        h, _ = self.gru(self.emb(ids))
        return self.head(h)


def loss_fn(logits, ids):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs-per-shard", type=int, default=4)
    p.add_argument("--shards", type=int, default=500)
    p.add_argument("--batch", type=int, default=4)
    args = p.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(4)
    model = DDP(LM())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    step = 0
    for shard in range(args.shards):
        data = get_shard(shard, rank)
        mine = data[rank::world][: len(data) // world]
        for epoch in range(args.epochs_per_shard):
            order = torch.randperm(len(mine))
            for i in range(0, len(mine) - args.batch + 1, args.batch):
                ids = mine[order[i : i + args.batch]]
                loss = loss_fn(model(ids), ids)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                time.sleep(0.12)
                step += 1
                if rank == 0 and step % 13 == 0:
                    print(f"shard {shard} epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
