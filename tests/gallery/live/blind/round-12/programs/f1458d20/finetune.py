import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from helpers import watch_memory

EPOCHS, STEPS, BATCH = 3, 60, 32


class Tagger(nn.Module):
    def __init__(self, vocab=500, dim=64, tags=9):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, tags)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def evaluate(model, gen):
    hits = torch.zeros(2)
    with torch.no_grad():
        for _ in range(5):
            x = torch.randint(0, 500, (BATCH, 24), generator=gen)
            hits += torch.tensor([(model(x).argmax(-1) == x % 9).sum(), x.numel()])
    dist.all_reduce(hits)
    return (hits[0] / hits[1]).item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if rank == 0:
        watch_memory()
    torch.manual_seed(0)
    model = DDP(Tagger())
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    gen = torch.Generator().manual_seed(rank)
    if rank == 0:
        print("training begins", flush=True)
    t0 = time.time()
    for epoch in range(EPOCHS):
        for step in range(STEPS):
            x = torch.randint(0, 500, (BATCH, 24), generator=gen)
            loss = F.cross_entropy(model(x).flatten(0, 1), (x % 9).flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            if rank == 0 and step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
        acc = evaluate(model.module, gen)
        if rank == 0:
            print(f"epoch {epoch} accuracy {acc:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    print(f"rank {rank} done", flush=True)


if __name__ == "__main__":
    main()
