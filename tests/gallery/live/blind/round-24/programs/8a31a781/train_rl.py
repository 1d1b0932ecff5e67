import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn

from packer import BatchReader, Packer


class TinyPolicy(nn.Module):
    def __init__(self, vocab=100, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.head(hidden)


def reinforce_loss(policy, batch):
    tokens = batch["tokens"].unsqueeze(0)
    logits = policy(tokens[:, :-1])
    nll = nn.functional.cross_entropy(logits.squeeze(0), tokens[0, 1:], reduction="none")
    return (nll * batch["weights"][1:]).mean()


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=60))
    rank, world = dist.get_rank(), dist.get_world_size()
    root = os.environ["ROLLOUT_DIR"]
    packer = Packer(root, world) if rank == 0 else None
    reader = BatchReader(root, rank)
    torch.manual_seed(1)
    policy = nn.parallel.DistributedDataParallel(TinyPolicy())
    opt = torch.optim.AdamW(policy.parameters(), lr=1e-3)
    for step in range(10000):
        if packer is not None:
            packer.pack(step)
        batch = reader.wait_for_batch(step)
        loss = reinforce_loss(policy, batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():+.5f}", flush=True)


if __name__ == "__main__":
    main()
