import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class TinyBert(nn.Module):
    def __init__(self, vocab=1000, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.body = nn.TransformerEncoderLayer(width, 4, 64, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, tokens):
        return self.head(self.body(self.embed(tokens)))


def masked(batch=8, length=32, vocab=1000):
    tokens = torch.randint(5, vocab, (batch, length))
    hidden = torch.rand(batch, length) < 0.15
    return tokens.masked_fill(hidden, 4), tokens.masked_fill(~hidden, -100)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print(f"rank {rank}/{dist.get_world_size()} on {os.uname().nodename}", flush=True)
    model = DDP(TinyBert())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(100_000):
        tokens, labels = masked()
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 25 == 0:
            print(f"{time.strftime('%H:%M:%S')} step {step} mlm {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
