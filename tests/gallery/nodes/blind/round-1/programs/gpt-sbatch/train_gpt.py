import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class GPT(nn.Module):
    def __init__(self, layers, width=64, vocab=512):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 128, batch_first=True, dropout=0) for _ in range(layers))
        self.head = nn.Linear(width, vocab)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=2)
    args = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    print(f"rank {rank}/{world} {os.uname().nodename}: joining", flush=True)
    dist.init_process_group("gloo", timeout=timedelta(minutes=60))
    print(f"rank {rank}/{world}: joined", flush=True)
    model = GPT(args.layers)
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(100_000):
        began = time.time()
        ids = torch.randint(512, (4, 65))
        loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f} {(time.time() - began) * 1e3:.0f} ms", flush=True)


if __name__ == "__main__":
    main()
