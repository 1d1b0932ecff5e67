import argparse
import time

import torch
import torch.distributed as dist
from torch import nn

from corpus import regenerate, vocabulary


class CharModel(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.emb = nn.Embedding.from_pretrained(torch.from_numpy(table), freeze=False)
        self.rnn = nn.LSTM(table.shape[1], 64, batch_first=True)
        self.out = nn.Linear(64, 97)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--refresh", type=int, default=8)
    p.add_argument("--bs", type=int, default=16)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(CharModel(vocabulary()))
    opt = torch.optim.Adam(model.parameters(), 2e-3)
    data = None
    for e in range(a.epochs):
        if e % a.refresh == 0:
            t0 = time.time()
            data = torch.from_numpy(regenerate(rank, e))
            print(f"rank {rank}: new data in {time.time() - t0:.1f}s", flush=True)
        order = torch.randperm(len(data))
        for i in range(0, len(order) - a.bs + 1, a.bs):
            x = data[order[i:i + a.bs]]
            loss = nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.08)
        if rank == 0:
            print(f"epoch {e} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
